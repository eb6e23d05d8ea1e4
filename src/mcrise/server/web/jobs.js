// @ts-check
// Jobs: all of them, their summaries, and news of the one that is open.
//
// A tab that is looked at asks in short questions, one that is hidden does not: any number of tabs
// share the few connections that a browser has to one server.

import { ask, askJson, query } from "./api.js";
import { change, state } from "./store.js";

export const OPEN = ["queued", "running"];
const SOON = 50,
  AT_FIRST = 5000,
  WHILE_IT_RUNS = 500,
  AT_REST = 3000,
  LIST = 2500; // milliseconds
const AT_ONCE = 12; // summaries

const hidden = new Set(); // deleted, but to be had back for a few seconds

/** Fetch the list now, and again as long as somebody looks. */
let listing = null;
export async function listJobs() {
  clearTimeout(listing);
  try {
    const jobs = numbered((await askJson("jobs")).filter((job) => !hidden.has(job.id)));
    if (!state.loaded || JSON.stringify(jobs) !== JSON.stringify(state.jobs)) change({ jobs, loaded: true });
    fetchSummaries();
  } catch {
    /* the api reports it: the list stays */
  }
  const busy = state.jobs.some((job) => OPEN.includes(job.state));
  clearTimeout(listing);
  listing = setTimeout(whenSeen(listJobs), busy ? LIST : 2 * LIST);
}

const whenSeen = (act) =>
  function wait() {
    if (document.hidden) document.addEventListener("visibilitychange", wait, { once: true });
    else act();
  };

let foremost = null;
/** What is open comes before the summaries of all the others. */
export function first(work) {
  foremost = work;
  return work;
}

/** Whether the summary of a job is still to be fetched. */
export function isMissing(job) {
  const known = state.summaries.get(job.id);
  return job.n_masks > 0 && known?.n_masks !== job.n_masks && (!OPEN.includes(job.state) || !known);
}

let fetching = false;
/** Cards of all jobs that rest and have some masks, a few at a time. */
async function fetchSummaries() {
  if (fetching) return;
  fetching = true;
  await new Promise((done) => {
    setTimeout(done, WHILE_IT_RUNS / 2);
  }); // something may be opened at once
  for (;;) {
    await Promise.resolve(foremost).catch(() => {});
    const missing = state.jobs.filter(isMissing).slice(0, AT_ONCE);
    if (!missing.length || document.hidden) break;
    try {
      const found = await askJson(query("summaries", { ids: missing.map((job) => job.id).join(",") }));
      for (const job of missing) state.summaries.set(job.id, { ...found[job.id], n_masks: job.n_masks });
    } catch {
      break;
    }
    change();
  }
  fetching = false;
}

/** News of one job until `stop` of what is returned is called. */
export function watch(id, news, gone) {
  const began = performance.now();
  let timer = null,
    over = false;
  const look = async () => {
    let wait;
    try {
      const job = await askJson(`jobs/${id}`);
      if (over) return;
      wait = !OPEN.includes(job.state)
        ? AT_REST
        : job.n_masks || performance.now() - began > AT_FIRST
          ? WHILE_IT_RUNS
          : SOON;
      news(job);
    } catch (error) {
      if (over) return;
      if (error.status === 404 || error.status === 422) {
        gone(error);
        return;
      }
      wait = state.lost ? WHILE_IT_RUNS * 2 : AT_REST;
    }
    if (!over) timer = setTimeout(whenSeen(look), wait);
  };
  look();
  return {
    now: () => {
      clearTimeout(timer);
      look();
    },
    stop: () => {
      over = true;
      clearTimeout(timer);
    },
  };
}

/** Delete some jobs in a while; the function returned has them back until then. */
export function deleteSoon(ids, seconds) {
  ids.forEach((id) => hidden.add(id));
  change({ jobs: state.jobs.filter((job) => !hidden.has(job.id)) });
  const really = () => {
    window.removeEventListener("pagehide", really);
    for (const id of ids) {
      ask(`jobs/${id}`, { method: "DELETE", keepalive: true })
        .catch(() => {})
        .finally(() => {
          hidden.delete(id);
          change({ n_deleted: state.n_deleted + 1 });
        });
    }
  };
  const timer = setTimeout(really, 1000 * seconds);
  window.addEventListener("pagehide", really);
  return () => {
    clearTimeout(timer);
    window.removeEventListener("pagehide", really);
    ids.forEach((id) => hidden.delete(id));
    listJobs();
  };
}

/** Which job it is, though others of the same picture and model stand beside it. */
export const called = (job) => `${job.name}, ${job.model}${job.nth > 1 ? `, number ${job.nth}` : ""}`;

/** Count those that are called alike, the oldest first. */
function numbered(list) {
  const seen = new Map();
  for (const job of list.toReversed()) {
    const name = JSON.stringify([job.name, job.model]);
    job.nth = (seen.get(name) ?? 0) + 1;
    seen.set(name, job.nth);
  }
  return list;
}

/** How long ago, in words. */
export function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 60) return "just now";
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86400) return `${Math.floor(past / 3600)} h ago`;
  return new Date(1000 * seconds).toLocaleDateString("en", { day: "numeric", month: "short" });
}

/** How far a job has got, in a word or two. */
export function stateWords(job) {
  if (job.state === "done") return "";
  if (job.preview && !job.n_masks) return "first look";
  if (job.state === "queued") return `waiting, number ${job.position}`;
  if (job.state === "running" && job.tolerance) return `${job.n_masks.toLocaleString("en")} masks`;
  return job.goal && job.state !== "failed" ? `${job.state} ${Math.floor((100 * job.n_masks) / job.goal)}%` : job.state;
}
