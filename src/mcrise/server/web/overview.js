// The overview: all images at once, and the way from a pattern to the images behind it.
// The numbers of classes and outliers come from the server.

import { go, read, write } from "./address.js";
import { askJson, query } from "./api.js";
import { byId, el, keep, named, swatch } from "./element.js";
import { called, jobs, stateWords } from "./jobs.js";
import { drawMap, signed } from "./maps.js";
import { matrix } from "./matrix.js";
import { scatter } from "./scatter.js";

const SORTS = { outliers: "outliers first", newest: "newest first", color: "most color first", sure: "surest first" };
const SHARES = ["0-0.25", "0.25-0.5", "0.5-0.75", "0.75-1"], SCORES = ["0-0.5", "0.5-0.9", "0.9-1"]; // to choose from without dragging
const MOST_SHOWN = 200;
let audit = null;

const images = (n) => `${n} image${n === 1 ? "" : "s"}`;

/** Fetch the statistics of the audit, if the server has one. */
export async function loadAudit(server) {
  if (server.audit) audit = await askJson("audit").catch(() => null);
}

export function showOverview(address) {
  const place = byId("overview");
  if (!place.firstChild) frame(place);
  const all = jobs.list.map((job) => ({ job, summary: jobs.summaries.get(job.id) ?? null })).filter(({ job }) => !address.model || job.model === address.model);
  const known = all.filter(({ summary }) => summary?.predicted);
  fetchNumbers(address, known);
  const { classes, colors } = numbers;
  const chosen = pick(all, address);
  byId("overview-count").textContent = counts(all, known, chosen);
  showGallery(chosen);
  const signature = JSON.stringify([address, all.map(({ job, summary }) => [job.id, job.state, summary?.n_masks]), numbers.key]);
  if (place.dataset.signature === signature) return; // what is new is in the gallery: the rest keeps the focus
  place.dataset.signature = signature;
  showFilters(address, all, known, classes);
  showAudit(address);
  const chosenClasses = classes.filter((one) => one.label === address.class), fewest = chosenClasses.length ? chosenClasses : classes;
  byId("overview-matrix").replaceChildren(...(known.length && colors.length ? [matrix(classes, colors, (one) => chosenClasses.includes(one), (one, color) => openClass(one, color, address))] : []));
  showScatter(known, address);
  const ofThis = numbers.label === (address.class ?? null) && numbers.model === (address.model ?? null);
  showMeans(ofThis && numbers.maps && fewest.length === 1 ? fewest[0] : null, colors);
  byId("overview-figures").hidden = known.length < 2;
  byId("overview-figures").classList.toggle("wide", colors.length > 6);
}

const NOTHING = { key: "", classes: [], colors: [], maps: null, distances: {} };
let numbers = NOTHING, fetching = false;

/** Fetch the numbers of all summaries again when summaries are new, then show them. */
async function fetchNumbers({ model = null, class: label = null }, known) {
  const key = JSON.stringify([model, label, jobs.n_deleted, known.map(({ job, summary }) => [job.id, summary.n_masks])]);
  if (numbers.key === key || fetching) return;
  fetching = true;
  try {
    const { classes, ...rest } = await askJson(query("overview", { model, label }));
    const several = new Set(classes.map((one) => one.model)).size > 1; // then a class of two models is two
    numbers = { key, model, label, ...rest, classes: classes.map((one) => ({ ...one, name: several ? `${one.label} · ${one.model}` : one.label })) };
  } catch {
    return; // asked again with the next news
  } finally {
    fetching = false;
  }
  if (document.body.dataset.level === "overview") showOverview(read());
}

/** The images behind a class of the matrix, or all again; with a color, those on which it does most first. */
function openClass(one, color, address) {
  const again = !color && one.label === address.class;
  const model = one.name === one.label ? {} : { model: one.model };
  go({ class: again ? null : one.label, sort: color ? `by ${color}` : address.sort ?? null, ...model });
}

function frame(place) {
  place.append(
    el("div", { class: "title-line" }, el("div", {}, el("h1", { id: "overview-title" }, "Overview"), el("p", { id: "overview-count", class: "hint" }))),
    el("div", { id: "overview-filters", class: "looks" }),
    el("div", { id: "overview-audit" }),
    el("div", { id: "overview-figures" },
      el("section", { class: "block", "aria-labelledby": "matrix-title" }, el("h2", { id: "matrix-title" }, "What each color does, by class ", el("span", { class: "hint" }, "mean change of the score; a cell opens its images")), el("div", { id: "overview-matrix" })),
      el("section", { class: "block", "aria-labelledby": "scatter-title" }, el("h2", { id: "scatter-title" }, "Color and certainty"), el("div", { id: "overview-scatter" }))),
    el("section", { class: "block", id: "overview-means", "aria-labelledby": "means-title", hidden: true }, el("h2", { id: "means-title" }), el("div", { class: "strip" })),
    el("ul", { id: "gallery" }), el("p", { id: "gallery-rest", class: "hint" }));
}

// ---- choosing

function pick(all, address) {
  const range = rangeOf(address);
  const chosen = all.filter(({ job, summary }) => (!address.class || summary?.of?.label === address.class)
    && (!address.answers || (address.answers === "failed" ? job.state === "failed" : summary?.right === (address.answers === "right")))
    && (!range || (summary?.predicted && inside(summary, range))));
  const { sort = "outliers" } = address, color = sort.startsWith("by ") ? sort.slice(3) : null;
  const effect = ({ summary }) => Math.abs(summary?.fills?.find((fill) => fill.name === color)?.effect ?? 0);
  const rank = { outliers: ({ job, summary }) => (summary?.of ? numbers.distances[job.id] ?? 0 : -1), color: ({ summary }) => summary?.color_share ?? -1, sure: ({ summary }) => summary?.predicted?.[0].score ?? -1 }[sort] ?? (color ? effect : null);
  return rank ? chosen.map((one) => [rank(one), one]).sort((one, other) => other[0] - one[0]).map(([, one]) => one) : chosen;
}

const spanOf = (words) => (words ? words.split("-").map(Number) : [0, 1]);
const rangeOf = ({ x, y }) => (x || y ? { x: spanOf(x), y: spanOf(y) } : null);
const scoreOf = (summary) => summary.predicted.find((one) => one.target === summary.of.target)?.score ?? 0;
const inside = (summary, { x, y }) => (summary.color_share ?? 0) >= x[0] && (summary.color_share ?? 0) <= x[1] && scoreOf(summary) >= y[0] && scoreOf(summary) <= y[1];

function counts(all, known, chosen) {
  const wait = all.length - known.length, wrong = known.filter(({ summary }) => summary.right === false).length;
  const folders = [...new Set(known.filter(({ job, summary }) => job.name.includes("/") && !summary.truth).map(({ job }) => job.name.split("/").at(-2)))];
  return [
    chosen.length === all.length ? images(all.length) : `${chosen.length} of ${images(all.length)}`, wrong ? `${wrong} wrong` : "", wait ? `${wait} without numbers yet` : "",
    folders.length ? `no class of the model is called ${folders.slice(0, 3).map((one) => `“${one}”`).join(", ")}${folders.length > 3 ? ` and ${folders.length - 3} more folders` : ""}` : "",
  ].filter(Boolean).join(" · ");
}

function showFilters(address, all, known, classes) {
  const focused = document.activeElement?.closest("#overview-filters") ? document.activeElement.name : null;
  const models = [...new Set(jobs.list.map((job) => job.model))];
  const judged = known.some(({ summary }) => summary.right !== null), failed = all.some(({ job }) => job.state === "failed");
  const select = (label, name, options) => el("label", {}, label, el("select", { name, "aria-label": label, onchange: (event) => go({ [name]: event.target.value || null }) },
    ...options.map(([value, words]) => el("option", { value, selected: (address[name] ?? "") === value }, words))));
  byId("overview-filters").replaceChildren(...[
    select("Class", "class", [["", "all"], ...[...countByLabel(classes)].map(([label, n]) => [label, `${label} (${n})`])]),
    judged || failed ? select("Answers", "answers", [["", "all"], ...(judged ? [["right", "right"], ["wrong", "wrong"]] : []), ...(failed ? [["failed", "failed"]] : [])]) : null,
    models.length > 1 ? select("Model", "model", [["", "all"], ...models.map((name) => [name, name])]) : null,
    known.length > 1 ? select("Color share", "x", spans(SHARES, address.x, (at) => `${Math.round(100 * at)}%`)) : null,
    known.length > 1 ? select("Score", "y", spans(SCORES, address.y, (at) => `${at}`)) : null,
    select("Order", "sort", [["", SORTS.outliers], ...Object.entries(SORTS).slice(1), ...(address.sort?.startsWith("by ") ? [[address.sort, `by the effect of ${address.sort.slice(3)}`]] : [])]),
    address.class || address.answers || address.x || address.y || address.model ? el("button", { type: "button", onclick: () => go({ class: null, answers: null, model: null, x: null, y: null, sort: null }) }, "Show all") : null,
  ].filter(Boolean));
  if (focused) byId("overview-filters").querySelector(`[name="${focused}"]`)?.focus();
}

/** Images of each class, whichever model was asked. */
function countByLabel(classes) {
  const counts = new Map();
  for (const { label, n } of classes) counts.set(label, (counts.get(label) ?? 0) + n);
  return counts;
}

/** Spans to choose from, that of the address among them. */
function spans(offered, chosen, text) {
  const all = chosen && !offered.includes(chosen) ? [...offered, chosen] : offered;
  return [["", "any"], ...all.map((words) => [words, spanOf(words).map(text).join(" to ")])];
}

function showScatter(known, address) {
  const points = known.filter(({ summary }) => summary.color_share !== null).map(({ job, summary }) => ({
    id: job.id, share: summary.color_share, score: Math.min(Math.max(scoreOf(summary), 0), 1), wrong: summary.right === false,
    words: `${job.name}: ${summary.predicted[0].label}`,
  }));
  const signature = JSON.stringify([points, address.x, address.y]);
  if (byId("overview-scatter").dataset.signature === signature) return; // somebody may be dragging over it
  byId("overview-scatter").dataset.signature = signature;
  byId("overview-scatter").replaceChildren(...(points.length ? [scatter(points, rangeOf(address), (id) => { location.hash = write({ level: "image", id }); },
    (range) => go(range ? { x: range.x.map((at) => at.toFixed(2)).join("-"), y: range.y.map((at) => at.toFixed(2)).join("-") } : { x: null, y: null }))] : []));
}

/** The mean maps of a class, all on one scale. */
function showMeans(one, colors) {
  byId("overview-means").hidden = !one || one.n < 2;
  if (!one) return;
  byId("means-title").textContent = `Mean maps of ${one.name}, ${images(one.n)}`;
  const { maps } = numbers, shown = colors.filter(({ name }) => maps[name]);
  const high = Math.max(1e-9, ...shown.flatMap(({ name }) => maps[name].flatMap((row) => row.map(Math.abs))));
  byId("overview-means").querySelector(".strip").replaceChildren(...shown.map((color) => {
    const canvas = el("canvas", { role: "img", "aria-label": `${color.name}: mean effect ${signed(one.effects[color.name])}` });
    const values = Float32Array.from(maps[color.name].flat());
    drawMap(canvas, { shape: [1, 8, 8], size: [96, 96], values, tests: values.map(() => 2), diverging: true, stops: STOPS }, 0, { low: -high, high });
    return el("figure", { class: "mean" }, canvas, el("figcaption", { class: "color-head" }, el("span", {}, swatch(color.swatch), ` ${color.name}`), ` ${signed(one.effects[color.name])}`));
  }));
}

const STOPS = [[45, 0, 75], [128, 115, 172], [247, 247, 247], [224, 130, 20], [127, 59, 8]]; // purple to orange

function showGallery(chosen) {
  const several = new Set(chosen.map(({ job }) => job.model)).size > 1;
  keep(byId("gallery"), chosen.slice(0, MOST_SHOWN).map(({ job, summary }) => ({ key: job.id, job, summary })), ({ job }) => el("li", {},
    el("a", { href: write({ level: "image", id: job.id }) }, el("img", { src: `/api/jobs/${job.id}/thumbnail`, alt: "", loading: "lazy", onerror: (event) => event.target.classList.add("missing") }),
      named(job.name), el("span", { class: "says" }), el("span", { class: "what" }))),
  (item, { job, summary }) => {
    const best = summary?.predicted?.[0];
    item.className = summary?.right === false ? "wrong" : job.state === "failed" ? "failed" : "";
    item.querySelector(".says").textContent = best ? `${best.label} ${best.score.toFixed(2)}` : "";
    item.querySelector(".what").textContent = [several ? job.model : "", summary?.right === false ? `is ${summary.truth.label}` : stateWords(job)].filter(Boolean).join(" · ");
    item.querySelector("a").setAttribute("aria-label", ["Open " + called(job), ...[".says", ".what"].map((one) => item.querySelector(one).textContent)].filter(Boolean).join(", "));
  });
  byId("gallery-rest").textContent = chosen.length > MOST_SHOWN ? `The first ${MOST_SHOWN} of ${chosen.length}.` : chosen.length || !jobs.list.length ? "" : "No image fits these filters.";
}

/** The classes of an audit: the same matrix with the audit's numbers. */
function showAudit(address) {
  if (!audit || byId("overview-audit").firstChild) return;
  const classes = audit.classes.map((one) => ({ name: one.label, n: one.n, accuracy: one.accuracy, effects: Object.fromEntries(audit.fills.map((fill, k) => [fill.name, one.effects[k]])) }));
  byId("overview-audit").append(el("section", { class: "block", "aria-labelledby": "audit-title" }, el("h2", { id: "audit-title" }, el("a", { href: audit.page }, `Audit ${audit.name}`)),
    matrix(classes, audit.fills, ({ name }) => name === address.class, ({ name }) => go({ class: name }))));
}
