// The page: one job at a time, its maps, and what can be asked of them without a model call.

import { ask, askJson, byId, follow, query } from "./api.js";
import { makeBrush, pixelsOf } from "./brush.js";
import { makeForm } from "./form.js";
import {
  drawBars, drawMap, drawScale, element, lifted, makeView, mark, sharedScale, track, unpack,
} from "./maps.js";

const about = await askJson("about");
const view = makeView(byId("large"), "The selected map over the picture; arrow keys move the pointer");
let shown = null; // the job on the page
let source = null;

// ---- jobs

async function open(id) {
  source?.close();
  shown = { id, rows: [], selected: { row: 0, k: 0 }, point: null, target: null, against: null };
  location.hash = id;
  byId("nothing").hidden = true;
  byId("job").hidden = false;
  byId("findings").replaceChildren();
  byId("remarks").replaceChildren();
  byId("try").hidden = true;
  byId("pending").textContent = "The reading comes when the job rests.";
  byId("panels").replaceChildren();
  byId("target").value = byId("against").value = "";
  watch();
}

function watch() {
  source?.close();
  const mine = shown;
  source = follow(mine.id, (job) => {
    if (mine !== shown) return;
    mine.job = job;
    tellState();
    if (job.n_masks) refresh();
    listJobs();
  }, (end) => {
    if (mine !== shown) return;
    if (end === "gone") close();
    listJobs();
  });
}

function close() {
  source?.close();
  shown = null;
  history.replaceState(null, "", location.pathname);
  byId("job").hidden = true;
  byId("nothing").hidden = false;
}

function tellState() {
  const { job } = shown;
  const words = [{ queued: `waiting, number ${job.position} in the queue`, running: "running" }[job.state] || job.state];
  words.push(`${job.n_masks.toLocaleString("en")} of ${job.goal.toLocaleString("en")} masks`);
  if (job.masks_per_second && job.state === "running") words.push(`${job.masks_per_second.toFixed(0)} masks/s`);
  if (job.seconds_left !== null) words.push(`${Math.ceil(job.seconds_left)} s left`);
  const error = shown.rows[0]?.relative_error;
  if (shown.rows.length) words.push(error === null ? "not above noise" : `relative error ${error.toFixed(2)}`);
  if (job.note) words.push(job.note);
  byId("state").textContent = words.join(" · ");
  byId("bar").value = job.goal ? job.n_masks / job.goal : 0;
  const working = ["queued", "running"].includes(job.state);
  byId("pause").textContent = working ? "Pause" : "Resume";
  byId("pause").disabled = job.state === "done";
  byId("stop").disabled = !working && job.state !== "paused";
}

let listing = false, listAgain = false;

/** Show the list of jobs, at most twice a second. */
async function listJobs() {
  if (listing) { listAgain = true; return; }
  listing = true;
  const jobs = await askJson("jobs").catch(() => []);
  byId("earlier").hidden = jobs.length === 0;
  byId("jobs").replaceChildren(...jobs.map((job) => {
    const item = element("li"), link = element("a");
    link.href = `#${job.id}`;
    if (job.id === shown?.id) link.setAttribute("aria-current", "true");
    const share = job.goal ? ` ${Math.floor(100 * job.n_masks / job.goal)} %` : "";
    link.append(element("span", "name", job.name), element("span", "what", job.state + (job.state === "done" ? "" : share)));
    item.append(link);
    return item;
  }));
  setTimeout(() => {
    listing = false;
    if (listAgain) { listAgain = false; listJobs(); }
  }, 500);
}

async function steer(path, options = { method: "POST" }) {
  byId("problem").textContent = "";
  try {
    await ask(`jobs/${shown.id}${path}`, options);
    if (options.method === "DELETE") close();
    else watch();
  } catch (error) {
    byId("problem").textContent = error.message;
  }
  listJobs();
}

byId("pause").onclick = () => steer(byId("pause").textContent === "Pause" ? "/do/pause" : "/do/resume");
byId("stop").onclick = () => steer("/do/stop");
byId("more").onclick = () => steer("/more/1000");
byId("delete").onclick = () => steer("", { method: "DELETE" });

// ---- maps

let busy = false, again = false;

/** Fetch and draw the maps that are asked for; one fetch at a time, the latest wish last. */
async function refresh() {
  again = true;
  if (busy) return;
  busy = true;
  while (again && shown) {
    again = false;
    const mine = shown;
    try {
      await load(mine);
    } catch (error) {
      if (error.status !== 404) byId("problem").textContent = error.message;
    }
    const resting = mine.job && !["queued", "running"].includes(mine.job.state);
    const late = mine === shown && mine.rows.length && mine.rows[0].n_masks < mine.job.n_masks;
    if (late && !again) { // an older map was at hand: the newer one is being made
      await new Promise((done) => setTimeout(done, 300));
      again = true;
    } else if (resting && mine === shown && !again) {
      await loadReading(mine).catch((error) => { byId("pending").textContent = error.message; });
    }
  }
  busy = false;
}

async function load(mine) {
  if (!mine.info) {
    const [info, pixels] = await Promise.all(
      [askJson(`jobs/${mine.id}/record`), pixelsOf(`/api/jobs/${mine.id}/image.png`)]);
    mine.pixels = pixels;
    mine.gray = lifted(mine.pixels);
    mine.info = info;
    if (mine !== shown) return;
    byId("classes").replaceChildren(...info.labels.map((label) => {
      const option = element("option");
      option.value = label;
      return option;
    }));
    mine.target = info.predicted[0].target;
    byId("target").value = info.labels[mine.target];
  }
  const estimator = byId("estimator").value;
  const wanted = [{ target: mine.target }];
  if (mine.against !== null) {
    wanted.push({ target: mine.against }, { target: mine.target, against: mine.against });
  }
  const rows = await Promise.all(wanted.map(async (one) => {
    const answer = await ask(query(`jobs/${mine.id}/maps`, { ...one, estimator }));
    return unpack(await answer.arrayBuffer());
  }));
  if (mine !== shown) return;
  mine.rows = rows;
  draw();
  tellState();
  mine.brush ??= await makeBrush(mine.id, mine.info, mine.pixels, () => mine.target);
}

function draw() {
  const { rows, info, selected } = shown;
  const swatches = info.fills.map((fill) => fill.swatch);
  selected.row = Math.min(selected.row, rows.length - 1);
  selected.k = Math.min(selected.k, rows[0].names.length - 1);
  shown.scale = sharedScale(rows);
  const layout = rows.map((maps) => [maps.label, ...maps.names].join("\n")).join("\n\n");
  if (layout !== byId("panels").dataset.layout || !byId("panels").firstChild) {
    byId("panels").dataset.layout = layout;
    byId("panels").replaceChildren(...rows.map((maps, row) => panelRow(maps, row, swatches)));
  }
  byId("panels").querySelectorAll(".panel").forEach((panel) => {
    const [row, k] = [Number(panel.dataset.row), Number(panel.dataset.k)];
    panel.setAttribute("aria-pressed", row === selected.row && k === selected.k);
    paintMap(panel.querySelector("canvas"), row, k);
  });
  const maps = rows[selected.row];
  paintMap(view.picture, selected.row, selected.k);
  byId("caption").textContent = `${maps.label} · ${maps.names[selected.k]} · ${maps.estimator}, ${maps.n_masks.toLocaleString("en")} masks`;
  drawScale(byId("scale"), maps, shown.scale);
  byId("notes").replaceChildren(...maps.notes.map((note) => element("li", "", note)));
  const [, height, width] = maps.shape;
  shown.point ??= { row: height >> 1, column: width >> 1 };
  point(shown.point);
  links();
}

const paintMap = (canvas, row, k) => drawMap(
  canvas, shown.rows[row], k, shown.scale, shown.gray, shown.pixels, Number(byId("strength").value));

function panelRow(maps, row, swatches) {
  const section = element("div"), line = element("div", "row");
  section.append(element("h3", "", maps.label), line);
  maps.names.forEach((name, k) => {
    const panel = element("button", "panel");
    panel.type = "button";
    Object.assign(panel.dataset, { row, k });
    const canvas = element("canvas"), head = element("span");
    if (maps.names.length === swatches.length && maps.diverging) {
      const swatch = element("i", "swatch");
      swatch.style.background = swatches[k];
      head.append(swatch);
    }
    head.append(name);
    panel.append(canvas, head);
    panel.onclick = () => { shown.selected = { row, k }; draw(); };
    track(canvas, point);
    line.append(panel);
  });
  return section;
}

function point(place) {
  if (!shown?.rows.length) return;
  shown.point = place;
  const maps = shown.rows[shown.selected.row];
  const perFill = maps.names.length === shown.info.fills.length && maps.names[0] === shown.info.fills[0].name;
  const swatches = perFill ? shown.info.fills.map((fill) => fill.swatch) : [];
  drawBars(byId("bars"), maps, shown.scale, swatches, place.row, place.column);
  mark(view, shown.outlined, place);
}

function links() {
  const asked = { target: shown.target, estimator: byId("estimator").value };
  byId("get-record").href = `/api/jobs/${shown.id}/run.npz`;
  byId("get-png").href = query(`/api/jobs/${shown.id}/maps.png`, asked);
  byId("get-report").href = query(`/api/jobs/${shown.id}/report.html`, asked);
}

// ---- reading

async function loadReading(mine) {
  const asked = { target: mine.target, against: mine.against, estimator: byId("estimator").value };
  const key = JSON.stringify([asked, mine.job.n_masks]);
  if (mine.read === key) return;
  const reading = await askJson(query(`jobs/${mine.id}/reading`, asked));
  if (mine !== shown) return;
  mine.read = key;
  showReading(reading);
}

function showReading(reading) {
  byId("findings").replaceChildren(...reading.findings.map((finding) => {
    const item = element("li", "", finding.sentence);
    item.tabIndex = 0;
    const outline = (runs) => () => { shown.outlined = runs; mark(view, runs, shown.point); };
    item.onmouseenter = item.onfocus = outline(finding.runs);
    item.onmouseleave = item.onblur = outline(null);
    return item;
  }));
  byId("remarks").replaceChildren(...reading.remarks.map((line) => element("li", "", line)));
  const silent = reading.findings.length || reading.remarks.length ? "" : "No finding. ";
  byId("pending").textContent = silent + reading.not_established;
  byId("try").hidden = shown.against !== null || !reading.findings.some((finding) => !finding.tried);
}

byId("try").onclick = async () => {
  const mine = shown;
  byId("try").disabled = true;
  try {
    const asked = { target: mine.target, estimator: byId("estimator").value };
    const reading = await askJson(query(`jobs/${mine.id}/trials`, asked), { method: "POST" });
    if (mine === shown) showReading(reading);
  } catch (error) {
    byId("pending").textContent = error.message;
  } finally {
    byId("try").disabled = false;
  }
};

// ---- controls

/** The class an input names, or undefined. */
function classOf(input) {
  const wanted = input.value.trim().toLowerCase();
  const { labels } = shown.info;
  let index = labels.findIndex((label) => label.toLowerCase() === wanted);
  if (index < 0 && wanted) index = labels.findIndex((label) => label.toLowerCase().includes(wanted));
  return index < 0 ? undefined : index;
}

byId("target").onchange = () => {
  const index = shown?.info && classOf(byId("target"));
  if (index === undefined) return;
  shown.target = index;
  byId("target").value = shown.info.labels[index];
  refresh();
  shown.brush?.();
};
byId("against").onchange = () => {
  if (!shown?.info) return;
  const index = byId("against").value.trim() ? classOf(byId("against")) : undefined;
  shown.against = index === undefined || index === shown.target ? null : index;
  byId("against").value = shown.against === null ? "" : shown.info.labels[shown.against];
  refresh();
};
for (const id of ["target", "against"]) byId(id).onfocus = (event) => event.target.select();
for (const name of about.estimators) byId("estimator").append(element("option", "", name));
byId("estimator").value = about.default;
byId("estimator").onchange = () => shown && refresh();
byId("strength").oninput = () => shown?.rows.length && draw();
track(view.picture, point);

makeForm(about, (job) => open(job.id));
const openHash = () => {
  const id = location.hash.slice(1);
  if (/^[0-9a-f]{16}$/.test(id) && id !== shown?.id) open(id);
};
window.addEventListener("hashchange", openHash);
listJobs();
openHash();
document.body.dataset.ready = "yes";
