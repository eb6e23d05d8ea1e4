// An image: its maps, what they say, and what can be asked of them without a model call.

import { go, read } from "./address.js";
import { ask, askJson, query } from "./api.js";
import { makeBrush } from "./brush.js";
import { classInput, showChips } from "./classes.js";
import { byStrength, showColors } from "./colors.js";
import { byId, el } from "./element.js";
import { showFindings } from "./findings.js";
import { OPEN, listJobs, watch } from "./jobs.js";
import { drawScale, sharedScale } from "./maps.js";
import { around } from "./outline.js";
import { hint, panesOf } from "./panes.js";
import { showProgress, showWaiting } from "./progress.js";
import { fetchRows } from "./rows.js";
import { makeStage } from "./stage.js";
import { toast } from "./toast.js";
import { showValues } from "./values.js";

const MORE = 1024; // masks

export function makeImage(about, { remove, like }) {
  let shown = null; // the job on the page
  let watching = null;
  const brush = { active: () => Boolean(shown?.brush?.active()) };
  for (const name of ["begin", "draw", "end", "reach"]) brush[name] = (...given) => shown.brush[name](...given);
  const stage = makeStage(byId("stage"), { moved: point, brush });

  // ---- which job

  function show(address) {
    if (shown?.id !== address.id) open(address.id);
    shown.address = address;
    byId("to-image").setAttribute("aria-pressed", address.level === "image");
    byId("to-whatif").setAttribute("aria-pressed", address.level === "whatif");
    byId("tools").hidden = byId("odds-block").hidden = address.level !== "whatif";
    apply();
  }

  function open(id) {
    close();
    shown = { id, address: read(), rows: [], job: null, info: null, key: "", order: [], brush: null, reading: null, most: 0 };
    for (const one of ["looking", "right", "waiting"]) byId(one).hidden = true;
    for (const one of ["chips", "findings", "remarks", "values", "colors", "notes", "odds"]) byId(one).replaceChildren();
    for (const one of ["state", "pending", "trial-problem", "odds-problem"]) byId(one).textContent = "";
    byId("picture-name").textContent = "…";
    byId("bar").removeAttribute("value");
    refuseTarget();
    refuseAgainst();
    stage.show([]);
    stage.outline("");
    stage.reset();
    const mine = shown;
    watching = watch(id, (job) => mine === shown && news(job), () => mine === shown && gone());
  }

  function close() {
    watching?.stop();
    watching = shown = null;
  }

  function gone() {
    close();
    byId("image").hidden = true;
    byId("missing").hidden = false;
    document.title = "Not here · mcrise";
    byId("missing").replaceChildren(el("h1", {}, "This explanation is not here"),
      el("p", {}, "It was deleted, or its address was not copied whole. What there is stands in the library."),
      el("a", { class: "button main", href: "#collection" }, "See the collection"));
    listJobs();
  }

  // ---- news of it

  function news(job) {
    const before = shown.job;
    shown.job = job;
    if (!before || before.goal !== job.goal && !job.tolerance) shown.most = 0;
    tellState();
    if (before?.state !== job.state) listJobs();
    if (job.n_masks && (shown.rows[0]?.n_masks ?? 0) < job.n_masks) refresh();
    if (before && OPEN.includes(before.state) && !OPEN.includes(job.state)) refresh();
  }

  function tellState() {
    shown.most = showProgress(shown.job, shown.rows, shown.most);
    showWaiting(shown.job, shown.rows, () => steer("/do/resume"));
  }

  async function steer(path) {
    try {
      const job = await (await ask(`jobs/${shown.id}${path}`, { method: "POST" })).json();
      news(job);
      watching?.now();
    } catch (error) {
      toast(error.message);
    }
    listJobs();
  }

  byId("pause").onclick = () => steer(byId("pause").textContent === "Pause" ? "/do/pause" : "/do/resume");
  byId("stop").onclick = () => steer("/do/stop");
  byId("more").onclick = () => steer(`/more/${MORE}`);
  byId("delete").onclick = () => remove([shown.id]);

  // ---- maps

  let busy = false, again = false;

  /** Fetch and draw what the address asks for; one fetch at a time, the latest wish last. */
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
        if (mine === shown && error.status && error.status !== 404) toast(error.message);
      }
      if (mine !== shown) { again = true; continue; }
      const late = mine.rows.length && mine.rows[0].n_masks < mine.job.n_masks;
      if (late && !again) { // an older map was at hand: the newer one is being made
        await new Promise((done) => { setTimeout(done, 300); });
        again = true;
      } else if (!again && mine.rows.length && !OPEN.includes(mine.job.state)) {
        await loadReading(mine).catch((error) => { if (mine === shown) byId("pending").textContent = error.message; });
      }
    }
    busy = false;
  }

  const asked = (mine) => ({ target: targetOf(mine), against: mine.address.vs ?? null, estimator: estimatorOf(mine) });
  const estimatorOf = (mine) => (about.estimators.includes(mine.address.estimator) ? mine.address.estimator : about.default);

  function targetOf(mine) {
    const wanted = Number(mine.address.class ?? NaN);
    return Number.isInteger(wanted) && wanted < mine.info.labels.length ? wanted : mine.info.predicted[0].target;
  }

  /** What decides which maps are fetched. */
  const keyOf = (mine) => JSON.stringify([asked(mine), mine.address.with ?? null]);

  async function load(mine) {
    if (!mine.info) {
      const info = await askJson(`jobs/${mine.id}/record`);
      if (mine !== shown) return;
      mine.info = info;
      mine.swatches = Object.fromEntries(info.fills.map((fill) => [fill.name, fill.swatch]));
      byId("classes").replaceChildren(...info.labels.map((label) => el("option", { value: label })));
    }
    const key = keyOf(mine), { rows, pictures, soon } = await fetchRows(mine, asked(mine), mine.address.with);
    if (mine !== shown) return;
    if (soon) setTimeout(() => mine === shown && refresh(), soon);
    Object.assign(mine, { rows, pictures, key });
    draw();
    tellState();
    mine.brush ??= makeBrush(mine.id, mine.info, stage, () => targetOf(mine));
    if (mine.address.level === "whatif") beginPainting();
  }

  /** Follow the address: fetch what is not here, draw the rest. */
  function apply() {
    const { info, rows, address } = shown;
    stage.look({ contours: address.contours !== "no" });
    byId("contours").checked = address.contours !== "no";
    if (!info || !rows.length) return;
    if (keyOf(shown) !== shown.key) {
      shown.reading = null;
      byId("findings-block").setAttribute("aria-busy", "true");
      byId("findings").replaceChildren();
      byId("remarks").replaceChildren();
      byId("no-finding").hidden = true;
      byId("pending").textContent = "Reading the maps of this class…";
      stage.outline("");
      showChips(info, targetOf(shown), Number(address.vs ?? NaN), choose);
      refresh();
      return;
    }
    draw();
    if (shown.reading) showReading();
    if (address.level === "whatif") beginPainting();
  }

  const colorOf = () => {
    const { address, rows, order } = shown;
    return rows[0].names.includes(address.color) ? address.color : order[0];
  };

  function draw() {
    const { rows, info, address, pictures, swatches } = shown;
    byId("looking").hidden = byId("right").hidden = false;
    const resting = !OPEN.includes(shown.job.state), now = byStrength(rows[0]).map(([name]) => name);
    if (resting || shown.order.length !== now.length || !now.every((name) => shown.order.includes(name))) shown.order = now;
    const color = colorOf(), own = address.scale === "row", one = sharedScale(rows);
    shown.scales = rows.map((maps) => (own ? maps : one));
    const above = Math.min(Number(address.above) || 0, one.high);
    stage.look({ above });
    stage.show(panesOf(rows, pictures, shown.scales, color, shown.job.name));
    showColors(rows, shown.scales, pictures, swatches, shown.order, color, (name) => go({ color: name, finding: null }));
    showChips(info, targetOf(shown), Number(address.vs ?? NaN), choose);
    byId("target").value = info.labels[targetOf(shown)];
    byId("against").value = address.vs === undefined ? "" : info.labels[Number(address.vs)] ?? "";
    byId("estimator").value = estimatorOf(shown);
    byId("own-scales-line").hidden = rows.length === 1;
    byId("own-scales").checked = own;
    byId("above").max = one.high;
    byId("above").step = one.high / 100;
    byId("above").value = above;
    byId("above").disabled = !rows[0].diverging;
    byId("above-value").textContent = above ? above.toPrecision(2) : "nothing";
    drawScale(byId("scale"), { ...rows[0], least: Math.min(...rows.map((maps) => maps.least)), most: Math.max(...rows.map((maps) => maps.most)) }, own ? rows[0] : one);
    byId("scale").hidden = own && rows.length > 1;
    byId("hint").textContent = hint(rows[0]);
    byId("notes").replaceChildren(...[...new Set([...info.notes, ...rows.flatMap((maps) => maps.notes)])].map((note) => el("li", {}, `${note}.`)));
    showOtherModels();
    point(stage.point);
    links();
  }

  function point(place) {
    if (!shown?.rows.length) return;
    showValues(shown.rows, shown.scales, shown.swatches, shown.order, place, shown.rows[0].names.indexOf(colorOf()));
  }

  function links() {
    const path = `/api/jobs/${shown.id}`, { target, estimator } = asked(shown);
    byId("get-record").href = `${path}/run.npz`;
    byId("get-png").href = query(`${path}/maps.png`, { target, estimator });
    byId("get-report").href = query(`${path}/report.html`, { target, estimator });
  }

  /** Other models that could be asked about the same picture. */
  function showOtherModels() {
    const others = about.models.filter((model) => model.name !== shown.job.model);
    byId("other-model").replaceChildren(...(shown.address.with ? [el("button", { type: "button", onclick: () => go({ with: null }) }, "Stop comparing")]
      : others.map((model) => el("button", { type: "button", onclick: () => like(shown.id, model.name) }, `Compare with ${model.name}, same masks`))));
  }

  // ---- reading

  async function loadReading(mine) {
    const key = `${mine.key} ${mine.job.n_masks}`;
    if (mine.readKey === key && mine.reading) return;
    const reading = await askJson(query(`jobs/${mine.id}/reading`, asked(mine)));
    if (mine !== shown || mine.key !== keyOf(mine)) return;
    Object.assign(mine, { reading, readKey: key });
    showReading();
  }

  function showReading() {
    const { reading, address, swatches, info, job } = shown;
    byId("findings-block").removeAttribute("aria-busy");
    const found = showFindings(reading, swatches, {
      pinned: address.finding, tryable: job.served && address.vs === undefined,
      choose: (finding) => go(finding ? { finding: finding.key, color: finding.fill } : { finding: null }),
      hover: (runs) => outline(runs ?? shown.pinned?.runs ?? null),
      attempt, paint: (finding) => go({ level: "whatif", finding: finding.key, color: finding.fill }),
    });
    shown.pinned = found.find((finding) => finding.key === address.finding) ?? null;
    outline(shown.pinned?.runs ?? null);
    byId("fill-finding").disabled = !shown.pinned && !found.length;
    shown.found = found;
    byId("trial-problem").textContent = "";
  }

  const paths = new WeakMap(); // outlines by their runs
  function outline(runs) {
    if (runs && !paths.has(runs)) paths.set(runs, around(runs, shown.info.size));
    stage.outline(runs ? paths.get(runs) : "");
  }

  async function attempt(finding, button) {
    const mine = shown;
    button.disabled = true;
    button.textContent = "Trying…";
    try {
      const { target, estimator } = asked(mine);
      const reading = await askJson(query(`jobs/${mine.id}/trials`, { target, estimator, finding: finding.key }), { method: "POST" });
      if (mine !== shown || mine.key !== keyOf(mine)) return;
      mine.reading = reading;
      go({ finding: finding.key, color: finding.fill }, { replace: true });
      showReading();
    } catch (error) {
      byId("trial-problem").textContent = error.message;
      button.disabled = false;
      button.textContent = "Try it";
    }
  }

  // ---- what if

  function beginPainting() {
    if (!shown.brush || shown.painting) { shown.brush?.redraw(); return; }
    shown.painting = true;
    shown.brush.choose(colorOf());
    shown.brush.redraw();
    shown.brush.tell();
  }

  byId("fill-finding").onclick = () => {
    const finding = shown.pinned ?? shown.found?.[0];
    if (finding) shown.brush.fill(finding.runs);
  };
  byId("to-image").onclick = () => go({ level: "image" });
  byId("to-whatif").onclick = () => go({ level: "whatif" });

  // ---- controls

  const choose = (index) => { go({ class: index, finding: null, vs: index === Number(shown.address.vs ?? NaN) ? null : shown.address.vs }); if (shown.brush && shown.painting) shown.brush.tell(); };
  const labels = () => shown?.info?.labels ?? [];
  const refuseTarget = classInput(byId("target"), byId("target-problem"), labels, choose);
  const refuseAgainst = classInput(byId("against"), byId("against-problem"), labels, (index) => {
    go({ vs: index === targetOf(shown) ? null : index, with: null, finding: null });
  });
  byId("estimator").append(...about.estimators.map((name) => el("option", {}, name)));
  byId("estimator").onchange = () => go({ estimator: byId("estimator").value, finding: null });
  byId("strength").oninput = () => stage.look({ strength: Number(byId("strength").value) });
  byId("above").oninput = () => {
    const above = Number(byId("above").value);
    stage.look({ above });
    byId("above-value").textContent = above ? above.toPrecision(2) : "nothing";
  };
  byId("above").onchange = () => go({ above: Number(byId("above").value) ? Number(byId("above").value).toPrecision(3) : null }, { replace: true });
  byId("contours").onchange = () => go({ contours: byId("contours").checked ? null : "no" }, { replace: true });
  byId("own-scales").onchange = () => go({ scale: byId("own-scales").checked ? "row" : null }, { replace: true });
  byId("zoom-in").onclick = () => stage.zoomBy(1.5);
  byId("zoom-out").onclick = () => stage.zoomBy(1 / 1.5);
  byId("zoom-all").onclick = () => stage.reset();
  const swap = () => {
    const is = byId("stage").classList.toggle("swapped");
    byId("swap").setAttribute("aria-pressed", is);
  };
  byId("swap").onclick = swap;
  byId("copy").onclick = async () => {
    await navigator.clipboard.writeText(location.href).then(() => toast("The link is copied."), () => toast(location.href, 15));
  };

  return {
    show, close, swap,
    chooseColor: (n) => { const name = shown?.order[n]; if (name) go({ color: name, finding: null }); },
    toggleCompare: () => {
      if (!shown?.info) return;
      if (shown.address.with || shown.address.vs !== undefined) go({ vs: null, with: null });
      else go({ vs: shown.info.predicted.find((one) => one.target !== targetOf(shown))?.target });
    },
    toggleBrush: () => shown?.info && shown.job.served && go({ level: shown.address.level === "whatif" ? "image" : "whatif" }),
    undo: () => shown?.brush?.undo(),
    redo: () => shown?.brush?.redo(),
  };
}
