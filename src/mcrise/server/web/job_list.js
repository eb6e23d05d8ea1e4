// The list of jobs: each with its thumbnail and the prediction; several can be selected.

import { write } from "./address.js";
import { byId, el, keep, named } from "./element.js";
import { ago, called, jobs, onJobs, stateWords } from "./jobs.js";

export const selected = new Set();
let current = null, actions = {};

export function makeJobList(given) {
  actions = given;
  onJobs(show);
  byId("filter").oninput = show;
  byId("compare-selected").onclick = () => actions.compare([...selected]);
  byId("delete-selected").onclick = () => { actions.remove([...selected]); selected.clear(); show(); };
  byId("unselect").onclick = () => { selected.clear(); show(); };
}

export function setCurrent(id) {
  current = id;
  show();
  const list = byId("jobs"), place = list.querySelector("[aria-current]")?.parentElement;
  if (!place) return;
  const above = list.scrollTop - place.offsetTop, below = place.offsetTop + place.offsetHeight - list.clientHeight - list.scrollTop;
  if (above > 0) list.scrollTop -= above; // the list alone: the page stays where it is
  else if (below > 0) list.scrollTop += below;
}

/** The jobs that the filter lets through, in the order shown. */
export function filtered() {
  const words = byId("filter").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  return jobs.list.filter((job) => {
    const best = jobs.summaries.get(job.id)?.predicted?.[0].label ?? "";
    const text = `${job.name} ${job.model} ${job.state} ${best}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function show() {
  const list = filtered();
  for (const id of selected) if (!jobs.list.some((job) => job.id === id)) selected.delete(id);
  keep(byId("jobs"), list.map((job) => ({ key: job.id, job })), ({ job }) => makeItem(job), update);
  byId("jobs-empty").hidden = list.length > 0 || !jobs.loaded;
  byId("jobs-empty").textContent = jobs.list.length ? "Nothing here fits the filter." : "Nothing yet. Press New, or drop a picture anywhere.";
  byId("n-jobs").textContent = jobs.list.length || "";
  byId("selection").hidden = selected.size === 0;
  byId("n-selected").textContent = `${selected.size} selected`;
  byId("compare-selected").disabled = selected.size !== 2;
  byId("compare-selected").title = selected.size === 2 ? "" : "Select two to compare";
}

function makeItem(job) {
  const box = el("input", { type: "checkbox", "aria-label": `Select ${called(job)}`, onchange: () => { selected[box.checked ? "add" : "delete"](job.id); show(); } });
  return el("li", { class: "job" },
    el("a", { href: write({ level: "image", id: job.id }) },
      el("img", { src: `/api/jobs/${job.id}/thumbnail`, alt: "", loading: "lazy", width: 44, height: 44, onerror: (event) => event.target.classList.add("missing") }),
      el("span", { class: "words" }, named(job.name), el("span", { class: "says" }), el("span", { class: "what" }))),
    box);
}

function update(item, { job }) {
  const summary = jobs.summaries.get(job.id), best = summary?.predicted?.[0];
  item.classList.toggle("wrong", summary?.right === false);
  const link = item.querySelector("a"), says = item.querySelector(".says");
  if (job.id === current) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
  says.textContent = best ? `${best.label} ${best.score.toFixed(2)}` : "";
  says.title = summary?.right === false ? `It is ${summary.truth.label}` : "";
  item.querySelector(".what").textContent = [stateWords(job), job.model, ago(job.created)].filter(Boolean).join(" · ");
  link.setAttribute("aria-label", [called(job), says.textContent, says.title, stateWords(job)].filter(Boolean).join(", "));
  item.querySelector("input").checked = selected.has(job.id);
  item.classList.toggle("failed", job.state === "failed");
  const image = item.querySelector("img.missing");
  if (image && job.n_masks) { image.classList.remove("missing"); image.src = `/api/jobs/${job.id}/thumbnail?again`; }
}
