// The page: where the address leads, and what the keys do.

import { go, leave, onMove, read } from "./address.js";
import { askJson, onConnection, query } from "./api.js";
import { loadAudit, showOverview } from "./overview.js";
import { byId } from "./element.js";
import "./health.js";
import { makeImage } from "./image.js";
import { deleteSoon, jobs, listJobs, onJobs } from "./jobs.js";
import { listenToKeys } from "./keys.js";
import { filtered, makeJobList, selected, setCurrent } from "./job_list.js";
import { makeNew, openNew } from "./new.js";
import { toast } from "./toast.js";
import { showWelcome } from "./welcome.js";

const UNDO_SECONDS = 8;
const server = await askJson("info").catch(() => null);
if (!server) {
  byId("lost").hidden = false;
  setTimeout(() => location.reload(), 3000);
  await new Promise(() => {});
}

const image = makeImage(server, { remove, like });

// ---- places

/** Show what the address names. */
function route(address) {
  let { level } = address;
  if (!level || (level === "overview" && jobs.loaded && !jobs.list.length)) level = jobs.list.length ? "overview" : "welcome";
  const open = level === "image" || level === "whatif";
  document.body.dataset.level = level;
  byId("image").hidden = !open;
  byId("missing").hidden = true;
  byId("welcome").hidden = level !== "welcome";
  byId("overview").hidden = level !== "overview";
  for (const link of document.querySelectorAll(".top nav a")) link.toggleAttribute("aria-current", link.hash === `#${level}`);
  if (open) image.show(address);
  else image.close();
  if (level === "welcome") showWelcome(server);
  if (level === "overview") showOverview(address);
  if (!open) document.title = level === "overview" ? "Overview · mcrise" : "mcrise";
  setCurrent(open ? address.id : null);
}

onMove(route);
onConnection((is) => { byId("lost").hidden = is; if (is) listJobs(); });

// ---- jobs

function remove(ids) {
  const names = ids.map((id) => jobs.list.find((job) => job.id === id)?.name ?? "the job");
  const back = deleteSoon(ids, UNDO_SECONDS), here = location.hash;
  const open = ids.includes(read().id);
  if (open) leave({ level: "overview" });
  const undo = toast(ids.length === 1 ? `Deleted ${names[0]}.` : `Deleted ${ids.length} jobs.`, UNDO_SECONDS, "Undo", () => {
    back();
    if (open) { history.replaceState(null, "", here); route(read()); }
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
  compare: ([one, other]) => { selected.clear(); leave({ level: "image", id: one, with: other }); },
});
makeNew(server, {
  begun: () => { if (read().level !== "overview") leave({ level: "overview" }); },
  remove,
  made: (job, only) => {
    listJobs();
    if (only) leave({ level: "image", id: job.id });
  },
});

// ---- the frame

byId("new").onclick = openNew;
byId("to-audit").hidden = !server.audit;
byId("help").onclick = () => byId("help-dialog").showModal();
document.querySelector(".skip").onclick = (event) => { event.preventDefault(); byId("main").focus(); };
byId("fold").onclick = () => {
  const open = document.querySelector(".job-list").classList.toggle("open");
  byId("fold").setAttribute("aria-expanded", open);
  byId("fold").textContent = open ? "Hide" : "Show";
};
listenToKeys({
  color: image.chooseColor,
  step: (by) => {
    const list = filtered(), at = list.findIndex((job) => job.id === read().id), next = list[at < 0 ? 0 : at + by];
    if (next) leave({ level: "image", id: next.id });
  },
  compare: image.toggleCompare,
  brush: image.toggleBrush,
  swap: image.swap,
  undo: image.undo,
  redo: image.redo,
  create: openNew,
  help: () => byId("help-dialog").showModal(),
});

await Promise.all([listJobs(), loadAudit(server)]);
let n_jobs = jobs.list.length;
onJobs(() => {
  const { level } = document.body.dataset;
  if (level === "overview" || (level === "welcome" && !n_jobs)) route(read());
  n_jobs = jobs.list.length;
});
route(read());
document.body.dataset.ready = "yes";
