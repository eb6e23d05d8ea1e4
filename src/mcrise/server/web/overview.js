// @ts-check
// The overview: all images at once, and the way from a pattern to the images behind it.
// The numbers of classes and outliers come from the server.

import { unfiltered } from "./address.js";
import { askJson, query } from "./api.js";
import { byId, el, swatch } from "./element.js";
import { filtered, images, rangeOf, scoreOf, spanOf } from "./filter.js";
import { showGallery } from "./gallery.js";
import { OPEN, isMissing } from "./jobs.js";
import { drawMap, drawScale, signed } from "./maps.js";
import { matrix } from "./matrix.js";
import { scatter } from "./scatter.js";
import { change, go, leave, state } from "./store.js";

const SORTS = { "": "wrong, then unusual", newest: "newest first", color: "most color first", sure: "surest first" };
const SHARES = ["0-0.25", "0.25-0.5", "0.5-0.75", "0.75-1"],
  SCORES = ["0-0.5", "0.5-0.9", "0.9-1"]; // without dragging
const HINTS = {
  matrix: "mean change of the score; a cell opens its images",
  means: "Mean change of the score over these images. Pale areas could be chance.",
};

const count = (n, what = "image") => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

/** Fetch the numbers of the audit, if the server has one. */
export async function loadAudit() {
  if (state.server.audit) change({ audit: await askJson("audit").catch(() => null) });
}

export function showOverview() {
  const place = byId("overview"),
    { address } = state;
  if (!place.firstChild) frame(place);
  const all = images(),
    known = all.filter(({ summary }) => summary?.predicted);
  fetchNumbers(known);
  const { classes, colors, key } = state.numbers ?? NOTHING,
    chosen = filtered();
  byId("overview-count").textContent = counts(all, known, chosen);
  showGallery(chosen);
  const jobs = all.map(({ job, summary }) => [job.id, job.state, summary?.n_masks]);
  const signature = JSON.stringify([address, jobs, key, Boolean(state.audit)]);
  if (place.dataset.signature === signature) return; // what is new is in the gallery: the rest keeps the focus
  place.dataset.signature = signature;
  showFilters(all, known, classes);
  showAudit();
  const ofThis = classes.filter((one) => one.label === address.of);
  const isChosen = (one) => ofThis.includes(one),
    open = (one, color) => openClass(one, color);
  byId("overview-matrix").replaceChildren(
    ...(known.length && colors.length ? [matrix(classes, colors, isChosen, open)] : []),
  );
  showScatter(known);
  showMeans(ofThis.length ? ofThis : classes, colors);
  byId("overview-figures").hidden = known.length < 2;
  byId("overview-figures").classList.toggle("wide", colors.length > 6);
}

function frame(place) {
  const block = (id, title, hint, ...inside) =>
    el(
      "section",
      { class: "block", id, "aria-labelledby": `${id}-title` },
      el("h2", { id: `${id}-title` }, title, hint ? el("span", { class: "hint" }, hint) : null),
      ...inside,
    );
  place.append(
    el(
      "div",
      { class: "title-line" },
      el("h1", { id: "overview-title" }, "Overview"),
      el("p", { id: "overview-count", class: "hint", role: "status" }),
    ),
    el("div", { id: "overview-filters", class: "looks", role: "group", "aria-label": "Filter" }),
    el("div", { id: "overview-audit" }),
    el(
      "div",
      { id: "overview-figures" },
      block("matrix", "What each color does, by class ", HINTS.matrix, el("div", { id: "overview-matrix" })),
      block("scatter", "Color and certainty", null, el("div", { id: "overview-scatter" })),
    ),
    el("ul", { id: "gallery" }),
    el("p", { id: "gallery-rest", class: "hint" }),
    block(
      "means",
      "",
      null,
      el("div", { class: "strip" }),
      el("div", { class: "scale", id: "means-scale" }),
      el("p", { class: "hint" }, HINTS.means),
    ),
  );
}

// ---- numbers

/** @type {import("./types.js").Numbers} */
const NOTHING = { key: "", classes: [], colors: [], maps: null, distances: {} };
let fetching = false;

/** Fetch the numbers of all summaries again when summaries are new. */
async function fetchNumbers(known) {
  const { model = null, of: label = null } = state.address;
  const key = JSON.stringify([
    model,
    label,
    state.n_deleted,
    known.map(({ job, summary }) => [job.id, summary.n_masks]),
  ]);
  if (state.numbers?.key === key || fetching || (!known.length && !state.numbers)) return;
  fetching = true;
  try {
    const { classes, ...rest } = await askJson(query("overview", { model, label }));
    const several = new Set(classes.map((one) => one.model)).size > 1; // then a class of two models is two
    const named = classes.map((one) => ({ ...one, name: several ? `${one.label} · ${one.model}` : one.label }));
    change({ numbers: { key, model, label, ...rest, classes: named } });
  } catch {
    /* asked again with the next news */
  } finally {
    fetching = false;
  }
}

/** The images behind a class of the matrix, or all again; with a color, those on which it does most first. */
function openClass(one, color) {
  const { address } = state,
    again = !color && one.label === address.of;
  const model = one.name === one.label ? {} : { model: one.model };
  go({ of: again ? null : one.label, sort: color ? `by ${color}` : (address.sort ?? null), ...model });
}

let began = null; // when jobs were first seen at work, and how many there were

/** How many images are still at work, and how long they will take. */
function waiting(all) {
  const open = all.filter(({ job }) => OPEN.includes(job.state)).length,
    now = performance.now();
  if (!open) {
    began = null;
    return "";
  }
  if (!began || open > began.open) began = { open, now };
  const done = began.open - open,
    seconds = done ? ((now - began.now) / 1000 / done) * open : null;
  const left =
    seconds === null
      ? ""
      : seconds < 90
        ? `, about ${Math.ceil(seconds)} s left`
        : `, about ${Math.round(seconds / 60)} min left`;
  return `${open} at work${left}`;
}

function counts(all, known, chosen) {
  const wrong = known.filter(({ summary }) => summary.right === false).length;
  const loading = all.filter(({ job }) => isMissing(job)).length,
    failed = all.filter(({ job }) => job.state === "failed").length;
  const strange = known.filter(({ job, summary }) => job.name.includes("/") && !summary.truth);
  const folders = [...new Set(strange.map(({ job }) => job.name.split("/").at(-2)))].map((one) => `“${one}”`);
  const more = folders.length > 3 ? ` and ${folders.length - 3} more folders` : "";
  return [
    chosen.length === all.length ? count(all.length) : `${chosen.length} of ${count(all.length)}`,
    wrong ? `${wrong} wrong${known.length < all.length - failed ? ` of ${known.length} known so far` : ""}` : "",
    waiting(all),
    loading ? `loading the numbers of ${loading}` : "",
    failed ? `${failed} failed` : "",
    folders.length ? `no class of the model is called ${folders.slice(0, 3).join(", ")}${more}` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

// ---- the filter

function showFilters(all, known, classes) {
  const { address } = state,
    focused = document.activeElement?.closest("#overview-filters") ? document.activeElement.getAttribute("name") : null;
  const models = [...new Set(state.jobs.map((job) => job.model))];
  const judged = known.some(({ summary }) => summary.right !== null),
    failed = all.some(({ job }) => job.state === "failed");
  const select = (label, name, options) =>
    el(
      "label",
      {},
      label,
      el(
        "select",
        { name, "aria-label": label, onchange: (event) => go({ [name]: event.target.value || null }) },
        ...options.map(([value, words]) => el("option", { value, selected: (address[name] ?? "") === value }, words)),
      ),
    );
  const counted = countByLabel(classes);
  if (address.of && !counted.has(address.of)) counted.set(address.of, 0); // what is chosen is always shown
  const answers = [
    ["", "all"],
    ...(judged
      ? [
          ["right", "right"],
          ["wrong", "wrong"],
        ]
      : []),
    ...(failed ? [["failed", "failed"]] : []),
  ];
  const sorts = Object.entries(SORTS);
  if (address.sort?.startsWith("by ")) sorts.push([address.sort, `by the effect of ${address.sort.slice(3)}`]);
  const isFiltered = Object.keys(unfiltered()).some((name) => address[name]);
  byId("overview-filters").replaceChildren(
    ...[
      select("Class", "of", [["", "all"], ...[...counted].map(([label, n]) => [label, `${label} (${n})`])]),
      judged || failed ? select("Answers", "answers", answers) : null,
      models.length > 1 ? select("Model", "model", [["", "all"], ...models.map((name) => [name, name])]) : null,
      known.length > 1
        ? select(
            "Color share",
            "x",
            spans(SHARES, address.x, (at) => `${Math.round(100 * at)}%`),
          )
        : null,
      known.length > 1
        ? select(
            "Score",
            "y",
            spans(SCORES, address.y, (at) => `${at}`),
          )
        : null,
      select("Order", "sort", sorts),
      address.find ? el("span", {}, `Name or class contains “${address.find}”`) : null,
      isFiltered ? el("button", { type: "button", onclick: () => go(unfiltered()) }, "Show all") : null,
    ].filter(Boolean),
  );
  if (focused) byId("overview-filters").querySelector(`[name="${focused}"]`)?.focus();
}

/** Images of each class, whichever model was asked. */
function countByLabel(classes) {
  const found = new Map();
  for (const { label, n } of classes) found.set(label, (found.get(label) ?? 0) + n);
  return found;
}

/** Spans to choose from, that of the address among them. */
function spans(offered, chosen, text) {
  const all = chosen && !offered.includes(chosen) ? [...offered, chosen] : offered;
  return [["", "any"], ...all.map((words) => [words, spanOf(words).map(text).join(" to ")])];
}

// ---- figures

function showScatter(known) {
  const { address } = state,
    place = byId("overview-scatter");
  const points = known
    .filter(({ summary }) => summary.color_share !== null)
    .map(({ job, summary }) => ({
      id: job.id,
      share: summary.color_share,
      score: Math.min(Math.max(scoreOf(summary), 0), 1),
      wrong: summary.right === false,
      words: `${job.name}: ${summary.predicted[0].label}`,
    }));
  const signature = JSON.stringify([points, address.x, address.y]);
  if (place.dataset.signature === signature) return; // somebody may be dragging over it
  place.dataset.signature = signature;
  const text = (span) => span.map((at) => at.toFixed(2)).join("-");
  const brushed = (range) => go(range ? { x: text(range.x), y: text(range.y) } : { x: null, y: null });
  const open = (id) => leave({ level: "image", id });
  place.replaceChildren(...(points.length ? [scatter(points, rangeOf(address), open, brushed)] : []));
}

/** The mean maps of a class, all on one scale; pale where chance alone may show as much. */
function showMeans(classes, colors) {
  const { maps = null, label = null, model = null } = state.numbers ?? NOTHING,
    { address } = state;
  const isOfThis = label === (address.of ?? null) && model === (address.model ?? null);
  const [one] = classes,
    place = byId("means");
  place.hidden = classes.length !== 1 || one.n < 2 || !maps || !isOfThis;
  if (place.hidden) return;
  byId("means-title").textContent = `Mean maps of ${one.name}, ${count(one.n)}`;
  const shown = colors.filter(({ name }) => maps[name]),
    numbers = shown.flatMap(({ name }) => maps[name].mean.flat());
  const high = Math.max(1e-9, ...numbers.map(Math.abs)),
    scale = { low: -high, high };
  const { stops } = state.server;
  place.querySelector(".strip").replaceChildren(
    ...shown.map(({ name, swatch: color }) => {
      const { mean, limit } = maps[name],
        values = Float32Array.from(mean.flat()),
        limits = limit?.flat();
      const tests = values.map((value, i) => (limits ? value / Math.max(limits[i], 1e-12) : 0));
      const n_beyond = tests.filter((test) => Math.abs(test) > 1).length;
      const words = n_beyond ? `significant in ${n_beyond} of ${tests.length} places` : "nothing significant";
      const canvas = el("canvas", {
        role: "img",
        "aria-label": `${name}: mean effect ${signed(one.effects[name])}, ${words}`,
      });
      drawMap(
        canvas,
        { shape: [1, ...shapeOf(mean)], size: [96, 96], values, tests, diverging: true, stops },
        0,
        scale,
      );
      return el(
        "figure",
        { class: "mean" },
        canvas,
        el(
          "figcaption",
          {},
          el("span", { class: "color-head" }, swatch(color), ` ${name} ${signed(one.effects[name])}`),
          el("br"),
          words,
        ),
      );
    }),
  );
  drawScale(
    byId("means-scale"),
    { stops, diverging: true, least: -high, most: high, unit: "mean change of the score" },
    scale,
  );
}

const shapeOf = (rows) => [rows.length, rows[0].length];

/** The classes of an audit: the same matrix with the audit's numbers; a class opens on the audit's page. */
function showAudit() {
  const { audit } = state,
    place = byId("overview-audit");
  if (!audit || place.firstChild) return;
  const effects = (one) => Object.fromEntries(audit.fills.map((fill, k) => [fill.name, one.effects[k]]));
  const classes = audit.classes.map((one) => ({
    name: one.label,
    n: one.n,
    accuracy: one.accuracy,
    anchor: one.anchor,
    effects: effects(one),
  }));
  place.append(
    el(
      "section",
      { class: "block", "aria-labelledby": "audit-title" },
      el(
        "h2",
        { id: "audit-title" },
        el("a", { href: audit.page }, `Audit ${audit.name}`),
        el(
          "span",
          { class: "hint" },
          ` ${count(classes.length, "class").replace("classs", "classes")}; a class opens its part of the audit`,
        ),
      ),
      matrix(
        classes,
        audit.fills,
        () => false,
        ({ anchor }) => {
          location.href = `${audit.page}${anchor ? `#${anchor}` : ""}`;
        },
      ),
    ),
  );
}
