// @ts-check
// The page: the one render of its state, where the address leads, and what the keys do.

import { askJson, query } from "./api.js";
import { byId } from "./element.js";
import { filtered } from "./filter.js";
import { makeImage } from "./image.js";
import { makeJobList, showJobList } from "./job_list.js";
import { deleteSoon, listJobs } from "./jobs.js";
import { makeNew, openNew } from "./new_job.js";
import { loadAudit, showOverview } from "./overview.js";
import { change, go, leave, renderWith, state, visit } from "./store.js";
import { toast } from "./toast.js";
import { showWelcome } from "./welcome.js";

const UNDO_SECONDS = 8;
state.server = await askJson("info").catch(() => null);
if (!state.server) {
  byId("lost").hidden = false;
  setTimeout(() => location.reload(), 3000);
  await new Promise(() => {});
}

const image = makeImage({ remove, like });

// ---- the one render

/** The level that the address names, or that fits what there is. */
function levelOf({ address, jobs, loaded, server }) {
  const empty = !jobs.length && !server.audit;
  if (!address.level || (address.level === "overview" && loaded && empty)) return empty ? "welcome" : "overview";
  return address.level;
}

let wasLost = false;

function render() {
  const { address, lost } = state,
    level = levelOf(state),
    open = level === "image" || level === "whatif";
  byId("lost").hidden = !lost;
  if (wasLost && !lost) listJobs();
  wasLost = lost;
  document.body.dataset.level = level;
  byId("welcome").hidden = level !== "welcome";
  byId("overview").hidden = level !== "overview";
  for (const link of document.querySelectorAll(".top nav a"))
    link.toggleAttribute("aria-current", link.getAttribute("href") === `#${level}`);
  if (open) image.show(address);
  else image.close();
  if (level === "welcome") showWelcome();
  if (level === "overview") showOverview();
  if (!open) document.title = level === "overview" ? "Overview · mcrise" : "mcrise";
  showJobList(open ? address.id : null);
}

// ---- jobs

function remove(ids) {
  const names = ids.map((id) => state.jobs.find((job) => job.id === id)?.name ?? "the job");
  const back = deleteSoon(ids, UNDO_SECONDS),
    here = location.hash,
    open = ids.includes(state.address.id);
  if (open) leave({ level: "overview" });
  const words = ids.length === 1 ? `Deleted ${names[0]}.` : `Deleted ${ids.length} jobs.`;
  const undo = toast(words, UNDO_SECONDS, "Undo", () => {
    back();
    if (open) visit(here, true);
    byId(open ? "delete" : "main").focus({ preventScroll: true });
  });
  undo.focus(); // what was pressed is gone
}

/** The picture of a job under the same masks, asked of another model; then both side by side. */
async function like(id, model) {
  try {
    const job = await askJson(query("jobs", { like: id, model }), { method: "POST" });
    await listJobs();
    go({ with: job.id, vs: null, finding: null });
  } catch (error) {
    toast(error.message);
  }
}

makeJobList({
  remove,
  compare: ([one, other]) => {
    change({ selected: new Set() });
    leave({ level: "image", id: one, with: other });
  },
});
makeNew({
  begun: () => {
    if (state.address.level !== "overview") leave({ level: "overview" });
  },
  remove,
  made: (job, only) => {
    listJobs();
    if (only) leave({ level: "image", id: job.id });
  },
});

// ---- the frame

byId("new").onclick = openNew;
byId("new").disabled = false;
byId("to-audit").hidden = !state.server.audit;
byId("help").onclick = () => byId("help-dialog").showModal();
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
byId("fold").onclick = () => {
  const open = document.querySelector(".job-list").classList.toggle("open");
  byId("fold").setAttribute("aria-expanded", open);
  byId("fold").textContent = open ? "Hide" : "Show";
};
/** Single letters, wherever no text is being written. */
function listenToKeys(acts) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const target = /** @type {Element} */ (event.target);
    const writing = target.matches?.("input:not([type=checkbox], [type=radio], [type=range]), select, textarea");
    if (writing || event.altKey) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key.toLowerCase() === "z" && document.body.dataset.level === "whatif") {
        event.preventDefault();
        acts[event.shiftKey ? "redo" : "undo"]();
      }
      return;
    }
    if (event.key === " " && target.matches?.("button, a, input, summary")) return;
    const act = /^[1-9]$/.test(event.key)
      ? () => acts.color(Number(event.key) - 1)
      : {
          "[": () => acts.step(-1),
          "]": () => acts.step(1),
          c: acts.compare,
          b: acts.brush,
          " ": acts.swap,
          n: acts.create,
          "?": acts.help,
        }[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

listenToKeys({
  color: image.chooseColor,
  step: (by) => {
    const list = filtered(),
      at = list.findIndex(({ job }) => job.id === state.address.id),
      next = list[at < 0 ? 0 : at + by];
    if (next) leave({ level: "image", id: next.job.id });
  },
  compare: image.toggleCompare,
  brush: image.toggleBrush,
  swap: image.swap,
  undo: image.undo,
  redo: image.redo,
  create: openNew,
  help: () => byId("help-dialog").showModal(),
});

// ---- a line at the top while jobs are not being worked on, or cannot be written down

const LOOK = 5000; // milliseconds between two looks
const line = document.createElement("p");
line.id = "health";
line.setAttribute("role", "alert");
line.hidden = true;
document.body.prepend(line);

function tell(trouble) {
  line.hidden = !trouble;
  if (line.textContent !== trouble) line.textContent = trouble;
}

async function look() {
  if (document.hidden) return;
  const worker = await askJson("health").catch(() => ({ trouble: "" }));
  tell(worker.trouble);
}

setInterval(look, LOOK);
tell(state.server.worker.trouble);

await Promise.all([listJobs(), loadAudit()]);
renderWith(render);
document.body.dataset.ready = "yes";
