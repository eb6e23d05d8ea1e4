// @ts-check
// The gallery: a tile for each image with its strongest map, what the model says, and whether it is right.

import { byId, el, keep, named } from "./element.js";
import { isMissing, stateWords } from "./jobs.js";
import { drawMap } from "./maps.js";
import { linkTo, state } from "./store.js";

const MOST_SHOWN = 400;

/** Tiles of some images, all maps on one scale. */
export function showGallery(chosen) {
  const several = new Set(chosen.map(({ job }) => job.model)).size > 1,
    shown = chosen.slice(0, MOST_SHOWN);
  const high = scaleOf(shown);
  const wanted = shown.map(({ job, summary }) => ({ key: job.id, job, summary, several, high }));
  keep(byId("gallery"), wanted, ({ job }) => makeTile(job), updateTile);
  const rest = chosen.length > MOST_SHOWN ? `The first ${MOST_SHOWN} of ${chosen.length}.` : "";
  byId("gallery-rest").textContent =
    rest || (chosen.length || !state.jobs.length || state.jobs.some(isMissing) ? "" : "No image fits these filters.");
}

/** The effect that nine of ten images stay below. */
function scaleOf(shown) {
  const strengths = shown.filter(({ summary }) => summary?.maps).map(({ summary }) => strongest(summary).most);
  return strengths.sort((one, other) => one - other)[Math.floor(0.9 * strengths.length)] || 1e-9;
}

/** The color whose coarse map reaches farthest from zero. */
function strongest({ maps }) {
  const reach = maps.map((map) => Math.max(...map.flat().map(Math.abs))),
    most = Math.max(...reach);
  return { k: reach.indexOf(most), most };
}

function makeTile(job) {
  const missing = (event) => event.target.classList.add("missing"),
    src = `/api/jobs/${job.id}/thumbnail`;
  const picture = () => el("img", { src, alt: "", loading: "lazy", onerror: missing });
  return el(
    "li",
    {},
    el(
      "a",
      {},
      el("span", { class: "pair-of" }, picture(), el("span", { class: "small-map" }, picture(), el("canvas"))),
      named(job.name),
      el("span", { class: "says" }),
      el("span", { class: "score-bar", "aria-hidden": "true" }, el("i")),
      el("span", { class: "what" }),
    ),
  );
}

function updateTile(item, { job, summary, several, high }) {
  const best = summary?.predicted?.[0],
    { right, truth } = summary ?? {};
  item.className = right === false ? "wrong" : job.state === "failed" ? "failed" : "";
  const find = (what) => item.querySelector(what),
    mark = { true: "✓ ", false: "✗ " }[right] ?? "";
  find("a").href = linkTo({ level: "image", id: job.id });
  find(".says").textContent = best ? `${mark}${best.label} ${best.score.toFixed(2)}` : "";
  find(".score-bar i").style.width = `${100 * Math.min(Math.max(best?.score ?? 0, 0), 1)}%`;
  const said = [
    right === false ? `is ${truth.label}` : stateWords(job),
    summary?.maps ? `map: ${summary.fills[strongest(summary).k].name}` : "",
  ];
  const nth = job.nth > 1 ? `number ${job.nth}` : "";
  find(".what").textContent = [...said, several ? job.model : "", nth].filter(Boolean).join(" · ");
  if (!summary?.maps || item.dataset.drawn === `${summary.n_masks} ${high}`) return;
  item.dataset.drawn = `${summary.n_masks} ${high}`;
  const { k } = strongest(summary),
    map = summary.maps[k],
    values = Float32Array.from(map.flat());
  const maps = {
    shape: [1, map.length, map[0].length],
    size: [48, 48],
    values,
    tests: values.map(() => 2),
    diverging: true,
    stops: state.server.stops,
  };
  drawMap(find("canvas"), maps, 0, { low: -high, high });
}
