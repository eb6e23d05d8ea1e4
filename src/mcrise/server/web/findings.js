// @ts-check
// The findings of a class beside the stage, each with the pictures of its tests, and the button that tests them.

import { askJson, query } from "./api.js";
import { byId, el, keep, swatch } from "./element.js";
import { OPEN } from "./jobs.js";
import { around } from "./outline.js";
import { go, state } from "./store.js";

const DIFFERENCE = "The difference of two classes is not tested: open one class alone to see its findings.";
const UNTESTED = "Not tested yet: the test paints places that the maps point at and asks the model again.";
const UNSERVED = "Not tested, and the model is not served any more.";
const SO_FAR = "Findings so far: when the run ends, its findings are searched for and tested again.";
const FETCHING = "Loading the findings of this class…";
const NOTHING = { key: "", answer: null, found: [], pinned: null, failed: false };

/** The findings beside a stage, on which they are outlined. */
export function makeFindings(stage) {
  let now = NOTHING;
  const paths = new WeakMap(); // outlines by their runs
  const testing = new Set(); // keys of maps whose findings are being tested

  /** Remove the findings of other maps. */
  function clear(words = "") {
    now = NOTHING;
    byId("findings-block").setAttribute("aria-busy", "true");
    byId("findings-block").classList.remove("so-far");
    for (const one of ["findings", "listed", "remarks"]) byId(one).replaceChildren();
    byId("more-findings").hidden = byId("no-finding").hidden = byId("test-class").hidden = true;
    byId("trial-problem").textContent = "";
    byId("pending").textContent = words;
    byId("strongest").textContent = "";
    byId("correction").hidden = true;
    idle();
    outline(null);
  }

  /** Say why there are no findings yet. */
  function wait(words) {
    if (!now.answer) byId("pending").textContent = words;
  }

  /** Whether asking the model of a job costs only time. */
  const isLocal = ({ job }) => Boolean(state.server.models.find((one) => one.name === job.model)?.local);

  /** Test what the maps of a running job point at, once; when the job ends its findings take their place. */
  async function early(mine, asked) {
    const key = `${mine.id} ${asked.target} so far`;
    if (now.key === key || asked.against !== null || !isLocal(mine)) return;
    now = { ...now, key };
    wait("Testing what the maps show so far…");
    try {
      const path = query(`jobs/${mine.id}/trials`, { target: asked.target, keep: false });
      const answer = await askJson(path, { method: "POST" });
      if (now.key !== key) return;
      now = { ...NOTHING, key, answer: { ...answer, soFar: true } };
      show(mine, asked);
    } catch {
      /* they are tested when the run ends, and that reports it */
    }
  }

  /** Fetch the findings of the maps that `key` stands for; an answer for maps that are gone is ignored. */
  async function load(mine, key, asked) {
    if (now.key === key) return;
    now = { ...now, key };
    wait(FETCHING);
    try {
      const answer =
        asked.against === null
          ? await askJson(query(`jobs/${mine.id}/findings`, { target: asked.target }))
          : { tested: false };
      if (now.key !== key) return;
      const tests = !answer.tested && asked.against === null && isLocal(mine),
        before = tests && now.answer?.soFar && now.answer.target === asked.target ? now.answer : null;
      now = { ...NOTHING, key, answer: before ?? answer };
      show(mine, asked);
      if (tests) test(mine, asked);
    } catch (error) {
      if (now.key !== key) return;
      now = { ...now, key: "", failed: true };
      byId("pending").textContent = error.message;
    }
  }

  function show(mine, asked) {
    if (!now.answer) return;
    const { address, swatches, job } = mine;
    const { tested, soFar = false } = now.answer;
    if (!soFar) byId("findings-block").removeAttribute("aria-busy");
    byId("findings-block").classList.toggle("so-far", soFar);
    byId("trial-problem").textContent = "";
    now.found = showFindings(now.answer, swatches, {
      pinned: address.finding,
      paintable: job.served,
      choose: (finding) => {
        go(finding ? { finding: finding.letter, color: finding.fill } : { finding: null });
        if (finding) requestAnimationFrame(see); // when it is drawn
      },
      hover: (runs) => outline(runs ?? now.pinned?.runs ?? null, mine.info),
      paint: (finding) => {
        go({ level: "whatif", finding: finding.letter, color: finding.fill });
        requestAnimationFrame(() => {
          // when it is drawn
          byId("stage").querySelector(".view").focus({ preventScroll: true }); // where the brush is
          see();
        });
      },
    });
    if (soFar) byId("pending").textContent = SO_FAR;
    else if (!tested)
      byId("pending").textContent = asked.against !== null ? DIFFERENCE : job.served ? UNTESTED : UNSERVED;
    byId("test-class").hidden =
      (tested && !soFar) || (soFar && OPEN.includes(job.state)) || asked.against !== null || !job.served;
    byId("test-class").onclick = () => test(mine, asked);
    now.pinned = now.found.find((finding) => finding.letter === address.finding) ?? null;
    const [strongest] = now.found;
    byId("strongest").textContent = strongest
      ? `Strongest finding${soFar ? " so far" : ""}: ${brief(strongest, now.answer.label)}`
      : "";
    const { correction = "" } = now.answer;
    byId("correction").hidden = !correction;
    byId("correction").textContent = `What makes it right: ${correction}`;
    outline(now.pinned?.runs ?? null, mine.info);
    byId("fill-finding").disabled = !now.found.length;
  }

  function idle() {
    byId("test-class").ariaDisabled = null;
    byId("test-class").textContent = "Test";
  }

  function outline(runs, info) {
    if (runs && !paths.has(runs)) paths.set(runs, around(runs, info.size));
    const path = runs ? paths.get(runs) : "";
    stage.outline(path);
    for (const line of document.querySelectorAll("#colors .region")) line.setAttribute("d", path);
  }

  /** Bring the stage into view where most of it is not: what was chosen is seen there. */
  function see() {
    const { top, bottom, height } = byId("stage").querySelector(".view").getBoundingClientRect();
    if (Math.min(bottom, innerHeight) - Math.max(top, 0) > height / 2) return;
    byId("stage").scrollIntoView({
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
    });
  }

  async function test(mine, asked) {
    const { key } = now,
      button = byId("test-class"),
      pressed = document.activeElement === button;
    if (testing.has(key)) return;
    testing.add(key);
    button.ariaDisabled = "true"; // not disabled: it would lose the focus
    button.textContent = "Testing…";
    try {
      const answer = await askJson(query(`jobs/${mine.id}/trials`, { target: asked.target }), { method: "POST" });
      if (now.key !== key) return;
      now.answer = answer;
      show(mine, asked);
      if (pressed) byId("findings").querySelector("button")?.focus({ preventScroll: true }); // what was pressed is gone
    } catch (error) {
      if (now.key === key) byId("trial-problem").textContent = error.message;
    } finally {
      testing.delete(key);
      if (now.key === key) idle();
    }
  }

  return { clear, wait, early, load, show, failed: () => now.failed, chosen: () => now.pinned ?? now.found[0] ?? null };
}

// ---- drawing them

/** All findings of a class; `pinned` is the letter of the one whose outline stays. */
function showFindings(answer, swatches, { pinned, choose, hover, paint, paintable }) {
  const found = answer.findings ?? [];
  const listed = found.filter((one) => !one.described),
    full = found.filter((one) => one.described);
  const show = (item, finding) => {
    item.classList.toggle("listed", !finding.described);
    item.hover = hover;
    item.runs = finding.runs;
    item.classList.toggle("pinned", finding.letter === pinned);
    const button = item.querySelector(".said");
    button.setAttribute("aria-pressed", finding.letter === pinned);
    button.onclick = () => choose(finding.letter === pinned ? null : finding);
    button.replaceChildren(swatch(swatches[finding.fill] ?? ""), el("span", {}, finding.sentence));
    item.querySelector(".lines").replaceChildren(...finding.lines.map((line) => el("li", {}, line)));
    showShots(item.querySelector(".shots"), finding);
    // These buttons are replaced.
    if (item.querySelector(".do").contains(document.activeElement)) button.focus({ preventScroll: true });
    item
      .querySelector(".do")
      .replaceChildren(
        el(
          "span",
          { class: `verdict ${finding.control?.verdict === "only here" ? "good" : ""}` },
          [`${finding.before.toFixed(2)} → ${finding.after.toFixed(2)}`, finding.control?.verdict]
            .filter(Boolean)
            .join(" · "),
        ),
        ...(finding.letter === pinned && paintable
          ? [el("button", { type: "button", onclick: () => paint(finding) }, "Paint it myself")]
          : []),
      );
  };
  for (const [place, some] of [
    ["findings", full],
    ["listed", listed],
  ]) {
    keep(
      byId(place),
      some.map((one) => ({ key: one.letter, ...one })),
      () => makeItem(),
      show,
    );
  }
  byId("more-findings").hidden = !listed.length;
  byId("n-listed").textContent = `${listed.length} more place${listed.length === 1 ? "" : "s"}`;
  if (listed.some((one) => one.letter === pinned)) byId("more-findings").open = true;
  const remarks = [...(answer.opening ?? []), ...(answer.remarks ?? [])];
  byId("remarks").replaceChildren(...remarks.map((line) => el("li", {}, line)));
  byId("no-finding").hidden = !answer.tested || found.length > 0 || remarks.length > 0;
  byId("pending").textContent = answer.closing ?? "";
  return found;
}

function makeItem() {
  const item = el(
    "li",
    { class: "finding" },
    el("button", { class: "said", type: "button" }),
    el("ul", { class: "shots" }),
    el("ul", { class: "lines hint" }),
    el("div", { class: "do" }),
  );
  const over = (runs) => item.hover?.(runs);
  item.onmouseenter = () => over(item.runs);
  item.onmouseleave = () => over(null);
  item.addEventListener("focusin", () => over(item.runs));
  item.addEventListener("focusout", () => over(null));
  return item;
}

/** A finding in the words of a headline. */
function brief({ place, fill, before, after, changes_decision: changes, says }, label) {
  const moves = after < before ? "lowers" : "raises",
    moved = `painting ${place} ${fill} ${moves} ‘${label}’ from ${before.toFixed(2)} to ${after.toFixed(2)}`;
  return `${moved}${changes ? `, and the model says ‘${says}’` : ""}.`;
}

const CHANGES = { "-1": "lowers", 0: "keeps", 1: "raises" };

/** The pictures that the model was asked about, each with the score and the answer. */
function showShots(place, { shots = [] }) {
  keep(
    place,
    shots.map((shot, i) => ({ key: `${i} ${shot.title}`, ...shot })),
    ({ title, score, answer, decides, change, picture }) =>
      el(
        "li",
        { class: `shot ${CHANGES[change]}`, title: `${title}: ${score}, ${answer}` },
        el("img", { src: picture, alt: "" }),
        el("span", {}, title),
        el("b", {}, score),
        el("span", { class: decides ? "decides" : "" }, decides ? answer : ""),
      ),
  );
}
