// @ts-check
// Rows of maps: of a class; or of two, A and B, and their difference where there is one.

import { ask, askJson, query } from "./api.js";
import { el } from "./element.js";
import { OPEN } from "./jobs.js";
import { unpack } from "./maps.js";

const SHORT = 28; // letters of a picture's name in a row's
const N_TOP = 3;

const short = (name) => (name.length > SHORT ? `${name.slice(0, SHORT / 2 - 1)}…${name.slice(-SHORT / 2)}` : name);
const pictureOf = (id) => `/api/jobs/${id}/image.png`;
const fetched = async (id, asked) => unpack(await (await ask(query(`jobs/${id}/maps`, asked))).arrayBuffer());

/**
 * The rows that are asked for, for a job { id, job, info }. Of a comparison also its `cards`, a `sentence` about what
 * differs or the `reason` why nothing is subtracted; `soon` says after how many milliseconds there will be more.
 */
export async function fetchRows(mine, { target, against, estimator }, other) {
  const own = pictureOf(mine.id),
    first = fetched(mine.id, { target, estimator });
  if (other) return compareJobs(mine, { target, estimator, first }, other);
  if (against === null) return { rows: [await first], pictures: [own] };
  const rows = await Promise.all([
    first,
    fetched(mine.id, { target: against, estimator }),
    fetched(mine.id, { target, against, estimator }),
  ]);
  const [one, two, difference] = rows,
    { predicted, labels } = mine.info;
  const card = (letter, index) => {
    const said = predicted.find((best) => best.target === index);
    return {
      letter,
      picture: own,
      title: labels[index],
      under: short(mine.job.name),
      top: [{ label: labels[index], score: said?.score ?? null }],
    };
  };
  one.label = `A: ${one.label}`;
  two.label = `B: ${two.label}`;
  difference.label = "A − B";
  const cards = [card("A", target), card("B", Number(against))];
  return { rows, pictures: [own, own, own], cards, sentence: difference.sentence, reason: "" };
}

async function compareJobs(mine, { target, estimator, first }, other) {
  const [job, info, one] = await Promise.all([
    askJson(`jobs/${other}`),
    askJson(`jobs/${other}/run`).catch(() => null),
    first,
  ]);
  const pictures = [pictureOf(mine.id)];
  if (!info) return { rows: [one], pictures, soon: 500 }; // it waits for its first masks
  const named = info.labels.indexOf(mine.info.labels[target]),
    theirs = named < 0 ? info.predicted[0].target : named;
  const less = { less: other, less_target: theirs };
  const [two, { reason }] = await Promise.all([
    fetched(other, { target: theirs, estimator }),
    askJson(query(`jobs/${mine.id}/comparable`, { target, ...less })),
  ]);
  const difference = reason ? null : await fetched(mine.id, { target, ...less, estimator });
  const samePicture = info.picture === mine.info.picture;
  const under = (a_job) => (samePicture ? a_job.model : `${short(a_job.name)} · ${a_job.model}`);
  const card = (letter, a_job, { predicted, labels }) => ({
    letter,
    picture: pictureOf(a_job.id),
    title: samePicture ? a_job.model : short(a_job.name),
    under: samePicture ? short(a_job.name) : a_job.model,
    top: predicted.slice(0, N_TOP).map((best) => ({ label: labels[best.target], score: best.score })),
  });
  one.label = `A: ${one.label} · ${under(mine.job)}`;
  two.label = `B: ${two.label} · ${under(job)}`;
  return {
    rows: [one, two, difference].filter(Boolean),
    pictures: [pictures[0], pictureOf(other), pictures[0]],
    cards: [card("A", mine.job, mine.info), card("B", job, info)],
    sentence: difference?.sentence ?? "",
    reason,
    less,
    soon: OPEN.includes(job.state) ? 1000 : null,
  };
}

// ---- panes: what of them is shown large, and how to read it

/** The picture and a map of each row, of the color that is chosen; of a comparison the maps alone. */
export function panesOf({ rows, pictures, scales, job, address }, color) {
  const maps = rows.map((row, i) => {
    const k = Math.max(row.names.indexOf(color), 0),
      { size, estimator, label } = row,
      name = row.names[k];
    const n_masks = row.n_masks.toLocaleString("en");
    return {
      key: `map ${i}`,
      kind: "map",
      picture: pictures[i],
      size,
      maps: row,
      k,
      scale: scales[i],
      alt: `Map of ${label} for ${name}`,
      caption: [el("b", {}, label), ` · ${name} · ${estimator}, ${n_masks} masks`],
    };
  });
  if (rows.length > 1 && address.level !== "whatif") return maps;
  const alt = `The picture ${job.name}; arrow keys move the pointer`;
  return [
    { key: "picture", kind: "picture", picture: pictures[0], size: rows[0].size, alt, caption: ["The picture"] },
    ...maps,
  ];
}

/** What the colors of the rows that are shown mean. */
export function hint(rows) {
  const [maps] = rows;
  if (!maps.diverging) {
    const words = "Each value is the mean score where that place is kept: only differences within the map count.";
    return `${words} Findings are read from the smooth maps.`;
  }
  const deed = maps.per_fill
    ? "painting this place with that color"
    : "keeping this place, rather than painting it with any of the colors,";
  const limits = rows.map(({ limit, tested_step: other }, i) => {
    const name = rows.length > 1 ? ` for ${["A", "B", "A − B"][i]}` : "";
    return `±${limit.toPrecision(2)}${other ? " in the centered maps" : ""}${name}`;
  });
  const last = rows.length > 2 ? ` A − B: orange where ${maps.per_fill ? "painting" : "keeping"} does more for A.` : "";
  const pale = `Pale areas (below ${limits.join(", ")}) could be chance; the contour is their edge.`;
  return `Orange: ${deed} raises the score; purple: lowers it.${last} ${pale}`;
}
