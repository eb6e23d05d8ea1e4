// @ts-check
// The filter of the images: one for the gallery, the list beside it and the keys that go from image to image.

import { OPEN } from "./jobs.js";
import { state } from "./store.js";

export const spanOf = (words) => (words ? words.split("-").map(Number) : [0, 1]);
/** @param {{ x?: string, y?: string }} address */
export const rangeOf = ({ x, y }) => (x || y ? { x: spanOf(x), y: spanOf(y) } : null);
export const scoreOf = (summary) => summary.predicted.find((one) => one.target === summary.of.target)?.score ?? 0;

/** All jobs of the model that is looked at, each with its summary or null. */
export function images({ model } = state.address) {
  return state.jobs
    .filter((job) => !model || job.model === model)
    .map((job) => ({ job, summary: state.summaries.get(job.id) ?? null }));
}

/** The images that the filter lets through, in its order. */
export function filtered(address = state.address) {
  const range = rangeOf(address),
    words = (address.find ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ job, summary }) =>
    (!address.of || summary?.of?.label === address.of) &&
    (!address.answers ||
      (address.answers === "failed" ? job.state === "failed" : summary?.right === (address.answers === "right"))) &&
    (!range || (summary?.predicted && inside(summary, range))) &&
    words.every((word) => textOf(job, summary).includes(word));
  const rank = ranked(address.sort),
    found = images(address).filter(fits);
  return rank
    ? found
        .map((one) => [rank(one), one])
        .sort((one, other) => other[0] - one[0])
        .map(([, one]) => one)
    : found;
}

const textOf = (job, summary) =>
  `${job.name} ${job.model} ${job.state} ${summary?.predicted?.[0].label ?? ""}`.toLowerCase();

const inside = (summary, { x, y }) => {
  const share = summary.color_share ?? 0,
    score = scoreOf(summary);
  return share >= x[0] && share <= x[1] && score >= y[0] && score <= y[1];
};

/** What images are sorted by, from large to small; null: newest first. */
function ranked(sort) {
  if (sort === "newest") return null;
  if (sort === "color") return ({ summary }) => summary?.color_share ?? -1;
  if (sort === "sure") return ({ summary }) => summary?.predicted?.[0].score ?? -1;
  if (sort?.startsWith("by ")) {
    return ({ summary }) => Math.abs(summary?.fills?.find((fill) => fill.name === sort.slice(3))?.effect ?? 0);
  }
  const { distances = {} } = state.numbers ?? {};
  return ({ job, summary }) => {
    // at work, then wrong, then unlike the others of their class
    if (OPEN.includes(job.state)) return 2e6;
    return (summary?.right === false ? 1e6 : 0) + (distances[job.id] ?? 0);
  };
}
