// @ts-check
// Progress: how far a job has got, in words, a bar and the title; and what stands where maps will be.

import { byId, el } from "./element.js";
import { OPEN, stateWords } from "./jobs.js";

/** Tell how far a job is; `most` is how far the bar was, behind which it never falls. Returns how far it is now. */
export function showProgress(job, rows, most) {
  const working = OPEN.includes(job.state),
    [first] = rows,
    error = first?.relative_error;
  const words = [stateWords(job) || "done"];
  if (job.n_masks && !(job.state === "running" && job.tolerance))
    words.push(`${job.n_masks.toLocaleString("en")} masks`);
  if (job.seconds_left !== null) words.push(`about ${Math.ceil(job.seconds_left)} s left`);
  if (first?.diverging) {
    // a map of levels, as that of rise, has no zero that its error could be compared with
    const until = job.tolerance && working ? `, stops at ${job.tolerance}` : "";
    words.push(error === null ? "not above noise" : `relative error ${error.toFixed(2)}${until}`);
  }
  words.push(job.model);
  if (job.note && job.state !== "failed") words.push(job.note);
  byId("picture-name").textContent = byId("picture-name").title = job.name;
  byId("state").textContent = byId("state").title = words.join(" · ");
  // Of auto nobody knows the goal; but the error falls with the root of the number of masks.
  const share = job.tolerance ? (error ? (job.tolerance / error) ** 2 : 0.02) : job.goal ? job.n_masks / job.goal : 0;
  const reached = job.state === "done" ? 1 : Math.min(Math.max(most, share), 0.98);
  byId("bar").value = reached;
  byId("bar").hidden = ["done", "failed"].includes(job.state);
  showSteering(job, working);
  const percent = working ? `${Math.round(100 * reached)}% ` : "";
  document.title = `${percent}${job.name}${first ? ` · ${first.label}` : ""} · mcrise`;
  if (byId("news").dataset.state !== job.id + job.state) {
    // spoken when the state changes, not with every mask
    byId("news").dataset.state = job.id + job.state;
    byId("news").textContent = `${job.name}: ${stateWords(job) || "done"}`;
  }
  return reached;
}

function showSteering(job, working) {
  const pauses = working ? "Pause" : "Resume";
  if (byId("pause").textContent !== pauses) byId("pause").textContent = pauses;
  byId("pause").hidden = ["done", "failed"].includes(job.state) || (!working && !job.served);
  byId("stop").hidden = !working && job.state !== "paused";
  byId("more").hidden = working || !job.served || !job.n_masks;
  byId("to-whatif").disabled = !job.served;
  byId("to-whatif").title = job.served
    ? ""
    : `The model ${job.model} is not served any more: its run can still be read.`;
}

/** What stands where maps will be, or why there are none. */
export function showWaiting(job, rows, again) {
  byId("waiting").hidden = rows.length > 0 && job.state !== "failed";
  if (job.state === "failed") {
    byId("waiting").dataset.words = "";
    byId("waiting").replaceChildren(
      ...(rows.length ? [] : [picture(job)]),
      el("p", { class: "problem" }, job.note || "It failed."),
      ...(job.served ? [el("button", { type: "button", onclick: again }, "Try again")] : []),
    );
  } else if (!rows.length) {
    const first = "The first map comes with the first masks.",
      turn = job.position === 1 ? "its turn" : `${job.position - 1} before it`;
    const words = job.n_masks ? "Drawing the maps…" : job.state === "queued" ? `Waiting for ${turn}. ${first}` : first;
    if (byId("waiting").dataset.words === words + job.id) return;
    byId("waiting").dataset.words = words + job.id;
    byId("waiting").replaceChildren(picture(job), el("p", {}, words));
  }
}

const picture = (job) => el("img", { src: `/api/jobs/${job.id}/image.png`, alt: "The picture" });
