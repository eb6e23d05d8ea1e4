// Rows of maps: of a class; of a second one and their difference; or of the same class of another job.

import { ask, askJson, query } from "./api.js";
import { OPEN } from "./jobs.js";
import { unpack } from "./maps.js";

const SHORT = 28; // letters of a picture's name in a row's

/**
 * The rows that are asked for and the picture of each, for a job { id, job, info }; `soon` says after
 * how many milliseconds there will be more.
 */
export async function fetchRows(mine, { target, against, estimator }, other) {
  const fetched = async (id, one) => unpack(await (await ask(query(`jobs/${id}/maps`, { ...one, estimator }))).arrayBuffer());
  const rows = await Promise.all([
    fetched(mine.id, { target }),
    ...(against === null ? [] : [fetched(mine.id, { target: against }), fetched(mine.id, { target, against })]),
  ]);
  const pictures = rows.map(() => pictureOf(mine.id));
  if (!other) return { rows, pictures };
  const [job, info] = await Promise.all([askJson(`jobs/${other}`), askJson(`jobs/${other}/record`).catch(() => null)]);
  if (!info) return { rows, pictures, soon: 500 }; // it waits for its first masks
  const named = info.labels.indexOf(mine.info.labels[target]), [first] = rows;
  const theirs = named < 0 ? info.predicted[0].target : named, second = await fetched(other, { target: theirs });
  const same = job.name === mine.job.name && job.model !== mine.job.model; // one picture, two models
  const short = (one) => (same ? one.model : one.name.length > SHORT ? `${one.name.slice(0, SHORT / 2 - 1)}…${one.name.slice(-SHORT / 2)}` : one.name);
  Object.assign(first, { of: short(mine.job), says: same ? `${mine.job.model} says` : `The model says of ${short(mine.job)}` });
  first.label = `${first.label} · ${short(mine.job)}`;
  second.label = `${second.label} · ${short(job)}`;
  rows.push(second);
  pictures.push(same ? pictures[0] : pictureOf(other));
  if (first.names.some((name) => second.names.includes(name))) {
    rows.push(await fetched(mine.id, { target, less: other, less_target: theirs }));
    pictures.push(pictures[0]);
  }
  return { rows, pictures, soon: OPEN.includes(job.state) ? 1000 : null };
}

const pictureOf = (id) => `/api/jobs/${id}/image.png`;
