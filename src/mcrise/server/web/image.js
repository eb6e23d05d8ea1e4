// @ts-check
// An image: its maps, what they say, and what can be asked of them without a model call.

import { showComparison, showFrame, showHeadline } from "./answer.js";
import { ask, askJson, query } from "./api.js";
import { makeBrush } from "./brush.js";
import { classInput, showChips } from "./classes.js";
import { byStrength, showColors } from "./colors.js";
import { byId, el } from "./element.js";
import { makeFindings } from "./findings.js";
import { OPEN, first, listJobs, watch } from "./jobs.js";
import { makeLooks } from "./looks.js";
import { drawScale, sharedScale } from "./maps.js";
import { showProgress, showWaiting } from "./progress.js";
import { fetchRows, hint, panesOf } from "./rows.js";
import { makeStage } from "./stage.js";
import { change, go, linkTo, state } from "./store.js";
import { toast } from "./toast.js";
import { hideValues, showValues } from "./values.js";

const MORE = 1024; // masks
const EARLY = 256; // masks after which what the maps show so far is tested
const FEW = 2; // models that have a button each

export function makeImage({ remove, like }) {
  const { server } = state;
  let shown = null; // the job on the page
  let watching = null;
  const brush = { active: () => Boolean(shown?.brush?.active()) };
  for (const name of ["begin", "draw", "end", "reach"]) brush[name] = (...given) => shown.brush[name](...given);
  const stage = makeStage(byId("stage"), { moved: point, brush });
  const looks = makeLooks(stage, server),
    findings = makeFindings(stage);

  // ---- which job

  function show(address) {
    if (shown?.id !== address.id) open(address.id);
    byId("image").hidden = shown.gone;
    byId("missing").hidden = !shown.gone;
    if (shown.gone || shown.address === address) return;
    shown.address = address;
    byId("to-image").setAttribute("aria-pressed", address.level === "image");
    byId("to-whatif").setAttribute("aria-pressed", address.level === "whatif");
    byId("tools").hidden = byId("odds-block").hidden = address.level !== "whatif";
    apply();
  }

  function open(id) {
    close();
    shown = {
      id,
      address: null,
      gone: false,
      rows: [],
      job: null,
      info: null,
      key: "",
      n_masks: 0,
      order: [],
      brush: null,
      most: 0,
    };
    for (const one of ["looking", "right", "waiting", "comparison", "frame"]) byId(one).hidden = true;
    for (const one of ["chips", "values", "colors", "notes", "odds", "headline"]) byId(one).replaceChildren();
    for (const one of ["state", "odds-problem"]) byId(one).textContent = "";
    byId("picture-name").textContent = "…";
    byId("bar").removeAttribute("value");
    target.clear();
    against.clear();
    stage.show([]);
    stage.reset();
    findings.clear();
    const mine = shown;
    watching = watch(
      id,
      (job) => mine === shown && news(job),
      () => mine === shown && gone(),
    );
  }

  function close() {
    watching?.stop();
    watching = shown = null;
    byId("image").hidden = byId("missing").hidden = true;
    hideValues();
  }

  function gone() {
    watching.stop();
    shown.gone = true;
    change();
    document.title = "Not here · mcrise";
    byId("missing").replaceChildren(
      el("h1", {}, "This explanation is not here"),
      el("p", {}, "It was deleted, or the link is incomplete. All explanations are in the list of jobs."),
      el("a", { class: "button main", href: linkTo({ level: "overview" }) }, "Open the overview"),
    );
    listJobs();
  }

  // ---- news of it

  function news(job) {
    const before = shown.job;
    shown.job = job;
    if (!before || (before.goal !== job.goal && !job.tolerance)) shown.most = 0;
    tellState();
    if (before?.state !== job.state) listJobs();
    const rests = before && OPEN.includes(before.state) && !OPEN.includes(job.state);
    if (!shown.rows.length || shown.n_masks < job.n_masks || rests || isBehind()) refresh();
  }

  /** Whether what is shown is not what was asked for: the server did not answer then. */
  const isBehind = () => shown.info !== null && (keyOf(shown) !== shown.key || findings.failed());

  function tellState() {
    shown.most = showProgress(shown.job, shown.rows, shown.most);
    showWaiting(shown.job, shown.rows, () => steer("/actions/resume"));
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

  byId("pause").onclick = () => steer(byId("pause").textContent === "Pause" ? "/actions/pause" : "/actions/resume");
  byId("stop").onclick = () => steer("/actions/stop");
  byId("more").onclick = () => steer(`/masks?n_masks=${MORE}`);
  byId("delete").onclick = () => remove([shown.id]);

  // ---- maps

  let busy = false,
    again = false;

  const hasMaps = (mine) => Boolean(mine?.job && (mine.job.n_masks || mine.job.preview));

  /** Fetch and draw what the address asks for; one fetch at a time, the latest wish last. */
  async function refresh() {
    again = true;
    if (busy) return;
    busy = true;
    while (again && hasMaps(shown)) {
      // else `news` asks again when there are some
      again = false;
      const mine = shown;
      try {
        await first(load(mine));
      } catch (error) {
        if (mine === shown && error.status && error.status !== 404) toast(error.message);
      }
      if (mine !== shown) {
        again = true;
        continue;
      }
      if (OPEN.includes(mine.job.state)) {
        findings.wait("Pause the run to get findings from the maps so far.");
        if (goesOn(mine)) findings.early(mine, asked(mine));
      }
      const late = mine.rows.length && mine.n_masks < mine.job.n_masks;
      if (late && !again) {
        // an older map was at hand: the newer one is being made
        await new Promise((done) => {
          setTimeout(done, 300);
        });
        again = true;
      } else if (!again && mine.rows.length && !OPEN.includes(mine.job.state)) {
        // Not waited for: another class may be wanted.
        findings.load(mine, `${mine.id} ${mine.key} ${mine.job.n_masks}`, asked(mine));
      }
    }
    busy = false;
  }

  /** Whether a run has masks enough for findings, and its end is not near. */
  const goesOn = ({ job, n_masks }) => n_masks >= EARLY && Boolean(job.tolerance || job.goal > 2 * n_masks);

  const asked = (mine) => ({
    target: targetOf(mine),
    against: mine.address.with ? null : (mine.address.vs ?? null),
    estimator: estimatorOf(mine),
  });
  const estimatorOf = (mine) =>
    server.estimators.includes(mine.address.estimator) ? mine.address.estimator : server.default_estimator;

  function targetOf(mine) {
    const wanted = Number(mine.address.class ?? NaN);
    return Number.isInteger(wanted) && wanted < mine.info.labels.length ? wanted : mine.info.predicted[0].target;
  }

  /** What decides which maps are fetched. */
  const keyOf = (mine) => JSON.stringify([asked(mine), mine.address.with ?? null]);

  async function load(mine) {
    const { preview } = mine.job,
      { class: wanted, vs, with: other } = mine.address;
    // The likeliest class: no need to know it first.
    const plain = !mine.info && wanted === undefined && vs === undefined && !other;
    const coming = plain ? fetchRows(mine, { target: null, against: null, estimator: estimatorOf(mine) }) : null;
    coming?.catch(() => {}); // reported below
    if (!mine.info) {
      const info = await askJson(`jobs/${mine.id}/run`);
      if (mine !== shown) return;
      mine.info = info;
      mine.swatches = Object.fromEntries(info.fills.map((fill) => [fill.name, fill.swatch]));
      byId("classes").replaceChildren(...info.labels.map((label) => el("option", { value: label })));
    }
    const key = keyOf(mine),
      { soon, ...made } = await (coming ?? fetchRows(mine, asked(mine), mine.address.with));
    if (mine !== shown) return;
    if (soon) setTimeout(() => mine === shown && refresh(), soon);
    const n_masks = preview ? 0 : made.rows[0].n_masks; // masks of a preview do not count
    Object.assign(mine, { cards: [], sentence: "", reason: "", less: {} }, made, { key, n_masks });
    draw();
    tellState();
    mine.brush ??= makeBrush(mine.id, mine.info, stage, () => targetOf(mine));
    if (mine.address.level === "whatif") beginPainting();
  }

  /** Follow the address: fetch what is not here, draw the rest. */
  function apply() {
    const { info, rows, address } = shown;
    looks.follow(address);
    if (!info || !rows.length) return;
    if (keyOf(shown) !== shown.key) {
      findings.clear("Loading the findings of this class…");
      showChips(info, targetOf(shown), Number(address.vs ?? NaN), choose);
      refresh();
      return;
    }
    draw();
    findings.show(shown, asked(shown));
    if (address.level === "whatif") beginPainting();
  }

  const colorOf = () => {
    const { address, rows, order } = shown;
    return rows[0].names.includes(address.color) ? address.color : (rows.at(-1).strongest ?? order[0]);
  };

  function draw() {
    const { rows, info, address, pictures, swatches } = shown;
    byId("looking").hidden = byId("right").hidden = false;
    const resting = !OPEN.includes(shown.job.state),
      now = byStrength(rows.at(-1)).map(([name]) => name);
    if (resting || shown.order.length !== now.length || !now.every((name) => shown.order.includes(name)))
      shown.order = now;
    const color = colorOf(),
      own = address.scale === "row" && rows.length > 1,
      one = sharedScale(rows);
    shown.scales = rows.map((maps) => (own ? maps : one));
    looks.show(rows, one, own, estimatorOf(shown), Math.min(Number(address.above) || 0, one.high));
    showHeadline(info);
    showFrame(shown.id, info);
    showComparison(shown);
    stage.show(panesOf(shown, color));
    showColors(rows, shown.scales, pictures, swatches, shown.order, color, own, (name) =>
      go({ color: name, finding: null }),
    );
    showChips(info, targetOf(shown), Number(address.vs ?? NaN), choose);
    target.show(info.labels[targetOf(shown)]);
    against.show(info.labels[Number(address.vs ?? NaN)] ?? "");
    const ends = {
      least: Math.min(...rows.map((maps) => maps.least)),
      most: Math.max(...rows.map((maps) => maps.most)),
    };
    drawScale(byId("scale"), { ...rows[0], ...ends }, one);
    byId("scale").hidden = own;
    byId("hint").textContent = hint(rows);
    const letter = rows.length > 1 ? " A" : "";
    byId("says-title").textContent = `The model says${letter ? " of A" : ""}`;
    byId("findings-title").textContent = `Findings${letter ? " of A" : ""}`;
    const noted = rows.flatMap((maps) => maps.notes.map((note) => (rows.length > 1 ? `${maps.label}: ${note}` : note)));
    byId("notes").replaceChildren(...[...new Set([...info.notes, ...noted])].map((note) => el("li", {}, `${note}.`)));
    showOtherModels();
    point(stage.point);
    links();
  }

  function point(place, event) {
    if (shown?.rows.length) showValues(shown, place, shown.rows[0].names.indexOf(colorOf()), event);
  }
  byId("stage").addEventListener("pointerleave", hideValues);
  byId("stage").addEventListener("focusout", hideValues);

  /** Exports show what is shown, both sides of a comparison too. */
  function links() {
    const path = `/api/jobs/${shown.id}`,
      { less, cards, reason } = shown,
      { estimator, ...rest } = asked(shown);
    const what = { ...rest, ...(reason ? {} : less) },
      compared = cards.length > 0 && !reason;
    byId("get-run").href = `${path}/run.npz`;
    byId("get-png").href = compared
      ? query(`${path}/maps.png`, { ...what, estimator })
      : query(`${path}/figure.png`, { target: rest.target });
    byId("get-report").href = query(`${path}/report.html`, { ...rest, ...less, estimator });
  }

  /** Other models that could be asked about the same picture. */
  function showOtherModels() {
    const { id } = shown,
      others = server.models.map((model) => model.name).filter((name) => name !== shown.job.model);
    const key = JSON.stringify([id, shown.address.with ?? null]);
    if (byId("other-model").dataset.key === key) return; // somebody may be choosing
    byId("other-model").dataset.key = key;
    if (shown.address.with)
      byId("other-model").replaceChildren(
        el("button", { type: "button", onclick: () => go({ with: null }) }, "Stop comparing"),
      );
    else if (others.length <= FEW)
      byId("other-model").replaceChildren(
        ...others.map((name) =>
          el("button", { type: "button", onclick: () => like(id, name) }, `Compare with ${name}, same masks`),
        ),
      );
    else {
      byId("other-model").replaceChildren(
        el(
          "label",
          { class: "field" },
          "Compare with a model, same masks ",
          el(
            "select",
            { onchange: (event) => like(id, event.target.value) },
            el("option", { value: "" }, "choose one"),
            ...others.map((name) => el("option", {}, name)),
          ),
        ),
      );
    }
  }

  // ---- what if

  function beginPainting() {
    if (!shown.brush || shown.painting) {
      shown.brush?.redraw();
      return;
    }
    shown.painting = true;
    shown.brush.choose(colorOf());
    shown.brush.redraw();
    shown.brush.tell();
  }

  byId("fill-finding").onclick = () => {
    const finding = findings.chosen();
    if (finding) shown.brush.fill(finding.runs);
  };
  byId("to-image").onclick = () => go({ level: "image" });
  byId("to-whatif").onclick = () => go({ level: "whatif" });

  // ---- controls

  const choose = (index) => {
    target.clear();
    go({ class: index, finding: null, vs: index === Number(shown.address.vs ?? NaN) ? null : shown.address.vs });
    if (shown.painting) shown.brush.tell();
  };
  const labels = () => shown?.info?.labels ?? [];
  const target = classInput(byId("target"), byId("target-problem"), labels, choose);
  const against = classInput(byId("against"), byId("against-problem"), labels, (index) => {
    go({ vs: index === targetOf(shown) ? null : index, with: null, finding: null });
  });

  return {
    show,
    close,
    swap: looks.swap,
    chooseColor: (n) => {
      const name = shown?.order[n];
      if (name) go({ color: name, finding: null });
    },
    toggleCompare: () => {
      if (!shown?.info) return;
      if (shown.address.with || shown.address.vs !== undefined) go({ vs: null, with: null });
      else go({ vs: shown.info.predicted.find((one) => one.target !== targetOf(shown))?.target });
    },
    toggleBrush: () =>
      shown?.info && shown.job.served && go({ level: shown.address.level === "whatif" ? "image" : "whatif" }),
    undo: () => shown?.brush?.undo(),
    redo: () => shown?.brush?.redo(),
  };
}
