// The collection: all images at once, and the way from a pattern to the images behind it.

import { go, write } from "./address.js";
import { askJson } from "./api.js";
import { byClass, colorsOf, unlikeness } from "./cards.js";
import { byId, el, keep, named, swatch } from "./element.js";
import { called, jobs, stateWords } from "./jobs.js";
import { drawMap, signed } from "./maps.js";
import { matrix } from "./matrix.js";
import { scatter } from "./scatter.js";

const SORTS = { unlike: "outliers first", newest: "newest first", color: "most color first", sure: "surest first" };
const SHARES = ["0-0.25", "0.25-0.5", "0.5-0.75", "0.75-1"], SCORES = ["0-0.5", "0.5-0.9", "0.9-1"]; // to choose from without dragging
const MOST_SHOWN = 200;
let audit = null;

const images = (n) => `${n} image${n === 1 ? "" : "s"}`;

/** Have the figures of an audit, where the server has one. */
export async function loadAudit(about) {
  if (about.audit) audit = await askJson("audit").catch(() => null);
}

export function showCollection(address) {
  const place = byId("collection");
  if (!place.firstChild) frame(place);
  const all = jobs.list.map((job) => ({ job, card: jobs.cards.get(job.id) ?? null })).filter(({ job }) => !address.model || job.model === address.model);
  const known = all.filter(({ card }) => card?.predicted);
  const classes = byClass(known), colors = colorsOf(known);
  const chosen = pick(all, classes, address);
  byId("collection-count").textContent = told(all, known, chosen);
  showGallery(chosen);
  const signature = JSON.stringify([address, all.map(({ job, card }) => [job.id, job.state, card?.n_masks])]);
  if (place.dataset.signature === signature) return; // what is new is in the gallery: the rest keeps the focus
  place.dataset.signature = signature;
  showFilters(address, all, known, classes);
  showAudit(address);
  const chosenClasses = classes.filter((one) => one.label === address.class), fewest = chosenClasses.length ? chosenClasses : classes;
  byId("collection-matrix").replaceChildren(...(known.length ? [matrix(classes, colors, (one) => chosenClasses.includes(one), (one, color) => openClass(one, color, address))] : []));
  showScatter(known, address);
  showMeans(fewest.length === 1 ? fewest[0] : null, colors);
  byId("collection-figures").hidden = known.length < 2;
  byId("collection-figures").classList.toggle("wide", colors.length > 6);
}

/** The images behind a class of the matrix, or all again; with a color, those on which it does most first. */
function openClass(one, color, address) {
  const again = !color && one.label === address.class;
  const model = one.name === one.label ? {} : { model: one.model };
  go({ class: again ? null : one.label, sort: color ? `by ${color}` : address.sort ?? null, ...model });
}

function frame(place) {
  place.append(
    el("div", { class: "title-line" }, el("div", {}, el("h1", { id: "collection-title" }, "Collection"), el("p", { id: "collection-count", class: "hint" }))),
    el("div", { id: "collection-filters", class: "looks" }),
    el("div", { id: "collection-audit" }),
    el("div", { id: "collection-figures" },
      el("section", { class: "block", "aria-labelledby": "matrix-title" }, el("h2", { id: "matrix-title" }, "What each color does, by class ", el("span", { class: "hint" }, "mean change of the score; a cell opens its images")), el("div", { id: "collection-matrix" })),
      el("section", { class: "block", "aria-labelledby": "scatter-title" }, el("h2", { id: "scatter-title" }, "Color and certainty"), el("div", { id: "collection-scatter" }))),
    el("section", { class: "block", id: "collection-means", "aria-labelledby": "means-title", hidden: true }, el("h2", { id: "means-title" }), el("div", { class: "strip" })),
    el("ul", { id: "gallery" }), el("p", { id: "gallery-rest", class: "hint" }));
}

// ---- choosing

function pick(all, classes, address) {
  const range = rangeOf(address);
  const chosen = all.filter(({ job, card }) => (!address.class || card?.of?.label === address.class)
    && (!address.answers || (address.answers === "failed" ? job.state === "failed" : card?.right === (address.answers === "right")))
    && (!range || (card?.predicted && inside(card, range))));
  const { sort = "unlike" } = address, color = sort.startsWith("by ") ? sort.slice(3) : null;
  const effect = ({ card }) => Math.abs(card?.fills?.find((fill) => fill.name === color)?.effect ?? 0);
  const rank = { unlike: (one) => (one.card?.of ? unlikeness(one, classes) : -1), color: ({ card }) => card?.color_share ?? -1, sure: ({ card }) => card?.predicted?.[0].score ?? -1 }[sort] ?? (color ? effect : null);
  return rank ? chosen.map((one) => [rank(one), one]).sort((one, other) => other[0] - one[0]).map(([, one]) => one) : chosen;
}

const spanOf = (words) => (words ? words.split("-").map(Number) : [0, 1]);
const rangeOf = ({ x, y }) => (x || y ? { x: spanOf(x), y: spanOf(y) } : null);
const scoreOf = (card) => card.predicted.find((one) => one.target === card.of.target)?.score ?? 0;
const inside = (card, { x, y }) => (card.color_share ?? 0) >= x[0] && (card.color_share ?? 0) <= x[1] && scoreOf(card) >= y[0] && scoreOf(card) <= y[1];

function told(all, known, chosen) {
  const wait = all.length - known.length, wrong = known.filter(({ card }) => card.right === false).length;
  const folders = [...new Set(known.filter(({ job, card }) => job.name.includes("/") && !card.truth).map(({ job }) => job.name.split("/").at(-2)))];
  return [
    chosen.length === all.length ? images(all.length) : `${chosen.length} of ${images(all.length)}`, wrong ? `${wrong} wrong` : "", wait ? `${wait} without figures yet` : "",
    folders.length ? `no class of the model is called ${folders.slice(0, 3).map((one) => `“${one}”`).join(", ")}${folders.length > 3 ? ` and ${folders.length - 3} more folders` : ""}` : "",
  ].filter(Boolean).join(" · ");
}

function showFilters(address, all, known, classes) {
  const focused = document.activeElement?.closest("#collection-filters") ? document.activeElement.name : null;
  const models = [...new Set(jobs.list.map((job) => job.model))];
  const judged = known.some(({ card }) => card.right !== null), failed = all.some(({ job }) => job.state === "failed");
  const select = (label, name, options) => el("label", {}, label, el("select", { name, "aria-label": label, onchange: (event) => go({ [name]: event.target.value || null }) },
    ...options.map(([value, words]) => el("option", { value, selected: (address[name] ?? "") === value }, words))));
  byId("collection-filters").replaceChildren(...[
    select("Class", "class", [["", "all"], ...[...countByLabel(classes)].map(([label, n]) => [label, `${label} (${n})`])]),
    judged || failed ? select("Answers", "answers", [["", "all"], ...(judged ? [["right", "right"], ["wrong", "wrong"]] : []), ...(failed ? [["failed", "failed"]] : [])]) : null,
    models.length > 1 ? select("Model", "model", [["", "all"], ...models.map((name) => [name, name])]) : null,
    known.length > 1 ? select("Color share", "x", spans(SHARES, address.x, (at) => `${Math.round(100 * at)} %`)) : null,
    known.length > 1 ? select("Score", "y", spans(SCORES, address.y, (at) => `${at}`)) : null,
    select("Order", "sort", [["", SORTS.unlike], ...Object.entries(SORTS).slice(1), ...(address.sort?.startsWith("by ") ? [[address.sort, `by the effect of ${address.sort.slice(3)}`]] : [])]),
    address.class || address.answers || address.x || address.y || address.model ? el("button", { type: "button", onclick: () => go({ class: null, answers: null, model: null, x: null, y: null, sort: null }) }, "Show all") : null,
  ].filter(Boolean));
  if (focused) byId("collection-filters").querySelector(`[name="${focused}"]`)?.focus();
}

/** Images of each class, whichever model was asked. */
function countByLabel(classes) {
  const counts = new Map();
  for (const { label, n } of classes) counts.set(label, (counts.get(label) ?? 0) + n);
  return counts;
}

/** Spans to choose from, that of the address among them. */
function spans(usual, chosen, told) {
  const all = chosen && !usual.includes(chosen) ? [...usual, chosen] : usual;
  return [["", "any"], ...all.map((words) => [words, spanOf(words).map(told).join(" to ")])];
}

function showScatter(known, address) {
  const points = known.filter(({ card }) => card.color_share !== null).map(({ job, card }) => ({
    id: job.id, share: card.color_share, score: Math.min(Math.max(scoreOf(card), 0), 1), wrong: card.right === false,
    words: `${job.name}: ${card.predicted[0].label}`,
  }));
  byId("collection-scatter").replaceChildren(...(points.length ? [scatter(points, rangeOf(address), (id) => { location.hash = write({ level: "image", id }); },
    (range) => go(range ? { x: range.x.map((at) => at.toFixed(2)).join("-"), y: range.y.map((at) => at.toFixed(2)).join("-") } : { x: null, y: null }))] : []));
}

/** The mean maps of a class, all on one scale. */
function showMeans(one, colors) {
  byId("collection-means").hidden = !one || one.n < 2;
  if (!one) return;
  byId("means-title").textContent = `Mean maps of ${one.name}, ${images(one.n)}`;
  const shown = colors.filter(({ name }) => one.means[name]);
  const high = Math.max(1e-9, ...shown.flatMap(({ name }) => one.means[name].flatMap((row) => [...row].map(Math.abs))));
  byId("collection-means").querySelector(".strip").replaceChildren(...shown.map((color) => {
    const canvas = el("canvas", { role: "img", "aria-label": `${color.name}: mean effect ${signed(one.effects[color.name])}` });
    const values = Float32Array.from(one.means[color.name].flatMap((row) => [...row]));
    drawMap(canvas, { shape: [1, 8, 8], size: [96, 96], values, tests: values.map(() => 2), diverging: true, stops: STOPS }, 0, { low: -high, high });
    return el("figure", { class: "mean" }, canvas, el("figcaption", { class: "color-head" }, el("span", {}, swatch(color.swatch), ` ${color.name}`), ` ${signed(one.effects[color.name])}`));
  }));
}

const STOPS = [[45, 0, 75], [128, 115, 172], [247, 247, 247], [224, 130, 20], [127, 59, 8]]; // purple to orange

function showGallery(chosen) {
  const several = new Set(chosen.map(({ job }) => job.model)).size > 1;
  keep(byId("gallery"), chosen.slice(0, MOST_SHOWN).map(({ job, card }) => ({ key: job.id, job, card })), ({ job }) => el("li", {},
    el("a", { href: write({ level: "image", id: job.id }) }, el("img", { src: `/api/jobs/${job.id}/thumbnail`, alt: "", loading: "lazy", onerror: (event) => event.target.classList.add("missing") }),
      named(job.name), el("span", { class: "says" }), el("span", { class: "what" }))),
  (item, { job, card }) => {
    const best = card?.predicted?.[0];
    item.className = card?.right === false ? "wrong" : job.state === "failed" ? "failed" : "";
    item.querySelector(".says").textContent = best ? `${best.label} ${best.score.toFixed(2)}` : "";
    item.querySelector(".what").textContent = [several ? job.model : "", card?.right === false ? `is ${card.truth.label}` : stateWords(job)].filter(Boolean).join(" · ");
    item.querySelector("a").setAttribute("aria-label", ["Open " + called(job), ...[".says", ".what"].map((one) => item.querySelector(one).textContent)].filter(Boolean).join(", "));
  });
  byId("gallery-rest").textContent = chosen.length > MOST_SHOWN ? `The first ${MOST_SHOWN} of ${chosen.length}.` : chosen.length || !jobs.list.length ? "" : "No image fits these filters.";
}

/** What an audit says of its classes: the same matrix, of its own figures. */
function showAudit(address) {
  if (!audit || byId("collection-audit").firstChild) return;
  const classes = audit.classes.map((one) => ({ name: one.label, n: one.n, accuracy: one.accuracy, effects: Object.fromEntries(audit.fills.map((fill, k) => [fill.name, one.effects[k]])) }));
  byId("collection-audit").append(el("section", { class: "block", "aria-labelledby": "audit-title" }, el("h2", { id: "audit-title" }, el("a", { href: audit.page }, `Audit ${audit.name}`)),
    matrix(classes, audit.fills, ({ name }) => name === address.class, ({ name }) => go({ class: name }))));
}
