// @ts-check
// The state of the page, and its one render. Modules change the state; what is seen is drawn from it alone.

import { filterOf, read, write } from "./address.js";

/** @type {import("./types.js").State} */
export const state = {
  address: read(), // where one is, and how one looks at it
  server: null, // what /api/info says
  audit: null, // the numbers of the audit that is served
  lost: false, // the server does not answer
  jobs: [], // all of them, newest first
  loaded: false, // the list of jobs was fetched once
  summaries: new Map(), // by job
  numbers: null, // of classes and outliers, from /api/overview
  selected: new Set(), // jobs that are ticked
  n_deleted: 0,
};

/** @type {(state: import("./types.js").State) => void} */
let draw = () => {};
let due = false;

/**
 * Change some of the state; all changes until the end of the current step are drawn at once.
 * @param {Partial<import("./types.js").State>} changes
 */
export function change(changes = {}) {
  Object.assign(state, changes);
  if (due) return;
  due = true;
  queueMicrotask(() => {
    due = false;
    draw(state);
  });
}

/** The one function that draws the state. */
export function renderWith(render) {
  draw = render;
  change();
}

/**
 * Change some of the address; a step that `back` undoes unless it only `replace`s.
 * @param {Record<string, string | number | null | undefined>} changes
 */
export function go(changes, { replace = false } = {}) {
  visit(write({ ...state.address, ...changes }), replace);
}

/**
 * Leave for another place: the filter comes along, and nothing else of this one's.
 * @param {Partial<import("./types.js").Address>} place
 */
export function leave(place) {
  visit(linkTo(place));
}

/** Go to an address as it is written. */
export function visit(address, replace = false) {
  if (address !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", address);
  change({ address: read() });
}

/**
 * The address of a place under the filter that holds now.
 * @param {Partial<import("./types.js").Address>} place
 */
export const linkTo = (place) => write({ ...filterOf(state.address), ...place });

window.addEventListener("popstate", () => change({ address: read() }));
