// @ts-check
// The list of jobs: those that the filter lets through, each with its thumbnail and the prediction.

import { byId, el, keep, named } from "./element.js";
import { filtered } from "./filter.js";
import { ago, called, isMissing, stateWords } from "./jobs.js";
import { change, go, linkTo, state } from "./store.js";

let current = null;

/** `remove` deletes jobs, `compare` opens two of them. */
export function makeJobList({ remove, compare }) {
  byId("filter").oninput = () => go({ find: byId("filter").value.trim() || null }, { replace: true });
  byId("compare-selected").onclick = () => compare([...state.selected]);
  byId("delete-selected").onclick = () => {
    remove([...state.selected]);
    select([]);
  };
  byId("unselect").onclick = () => select([]);
}

const select = (ids) => change({ selected: new Set(ids) });

/** Draw the list; `id` is the job that is open, or null. */
export function showJobList(id) {
  const { jobs, selected, loaded, address } = state,
    list = filtered();
  for (const one of selected) if (!jobs.some((job) => job.id === one)) selected.delete(one);
  if (document.activeElement !== byId("filter")) byId("filter").value = address.find ?? "";
  keep(
    byId("jobs"),
    list.map(({ job }) => ({ key: job.id, job, id })),
    ({ job }) => makeItem(job),
    update,
  );
  byId("jobs-empty").hidden = list.length > 0 || !loaded;
  byId("jobs-empty").textContent = !jobs.length
    ? "Nothing yet. Press New, or drop a picture anywhere."
    : jobs.some(isMissing)
      ? "Loading the numbers of the images…"
      : "No image fits the filter.";
  byId("n-jobs").textContent = list.length === jobs.length ? jobs.length || "" : `${list.length} of ${jobs.length}`;
  byId("selection").hidden = selected.size === 0;
  byId("n-selected").textContent = `${selected.size} selected`;
  byId("compare-selected").disabled = selected.size !== 2;
  byId("compare-selected").title = selected.size === 2 ? "" : "Select two to compare";
  if (id !== current) scrollTo(id);
  current = id;
}

/** Bring a job into view in the list alone: the page stays where it is. */
function scrollTo(id) {
  const list = byId("jobs"),
    place = list.querySelector(`[data-key="${id}"]`);
  if (!place) return;
  const above = list.scrollTop - place.offsetTop;
  const below = place.offsetTop + place.offsetHeight - list.clientHeight - list.scrollTop;
  if (above > 0) list.scrollTop -= above;
  else if (below > 0) list.scrollTop += below;
}

function makeItem(job) {
  const box = el("input", {
    type: "checkbox",
    "aria-label": `Select ${called(job)}`,
    onchange: () => {
      state.selected[box.checked ? "add" : "delete"](job.id);
      change();
    },
  });
  return el(
    "li",
    { class: "job" },
    el(
      "a",
      {},
      el("img", {
        src: `/api/jobs/${job.id}/thumbnail`,
        alt: "",
        loading: "lazy",
        width: 44,
        height: 44,
        onerror: (event) => event.target.classList.add("missing"),
      }),
      el("span", { class: "words" }, named(job.name), el("span", { class: "says" }), el("span", { class: "what" })),
    ),
    box,
  );
}

function update(item, { job, id }) {
  const summary = state.summaries.get(job.id),
    best = summary?.predicted?.[0],
    wrong = summary?.right === false;
  item.classList.toggle("wrong", wrong);
  item.classList.toggle("failed", job.state === "failed");
  const link = item.querySelector("a"),
    says = item.querySelector(".says");
  link.href = linkTo({ level: "image", id: job.id });
  if (job.id === id) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
  says.textContent = best ? `${wrong ? "✗ " : ""}${best.label} ${best.score.toFixed(2)}` : "";
  says.title = wrong ? `The true label is ${summary.truth.label}` : "";
  const nth = job.nth > 1 ? `number ${job.nth}` : "";
  item.querySelector(".what").textContent = [stateWords(job), job.model, nth, ago(job.created)]
    .filter(Boolean)
    .join(" · ");
  item.querySelector("input").checked = state.selected.has(job.id);
  const image = item.querySelector("img.missing");
  if (image && job.n_masks) {
    image.classList.remove("missing");
    image.src = `/api/jobs/${job.id}/thumbnail?again`;
  }
}
