// The findings of a class beside the stage, and the button that searches for them and tests them.

import { go } from "./address.js";
import { askJson, query } from "./api.js";
import { byId } from "./element.js";
import { showFindings } from "./findings.js";
import { around } from "./outline.js";

const DIFFERENCE = "The difference of two classes is not tested: open one class alone to see its findings.";
const UNTESTED = "Not tested yet: the test paints places that the maps point at and asks the model again.";
const UNSERVED = "Not tested, and the model is not served any more.";
const FETCHING = "Loading the findings of this class…";
const NOTHING = { key: "", answer: null, found: [], pinned: null };

/** The findings beside a stage, on which they are outlined. */
export function makeFindings(stage) {
  let now = NOTHING;
  const paths = new WeakMap(); // outlines by their runs

  /** Remove the findings of other maps. */
  function clear(words = "") {
    now = NOTHING;
    byId("findings-block").setAttribute("aria-busy", "true");
    for (const one of ["findings", "remarks"]) byId(one).replaceChildren();
    byId("no-finding").hidden = byId("test-class").hidden = true;
    byId("trial-problem").textContent = "";
    byId("pending").textContent = words;
    outline(null);
  }

  /** Say why there are no findings yet. */
  function wait(words) {
    if (!now.answer) byId("pending").textContent = words;
  }

  /** Fetch the findings of the maps that `key` stands for; an answer for maps that are gone is ignored. */
  async function load(mine, key, asked) {
    if (now.key === key) return;
    now = { ...now, key };
    wait(FETCHING);
    try {
      const answer = asked.against === null ? await askJson(query(`jobs/${mine.id}/findings`, { target: asked.target })) : { tested: false };
      if (now.key !== key) return;
      now = { ...NOTHING, key, answer };
      show(mine, asked);
    } catch (error) {
      if (now.key !== key) return;
      now = { ...now, key: "" };
      byId("pending").textContent = error.message;
    }
  }

  function show(mine, asked) {
    if (!now.answer) return;
    const { address, swatches, job } = mine;
    byId("findings-block").removeAttribute("aria-busy");
    byId("trial-problem").textContent = "";
    now.found = showFindings(now.answer, swatches, {
      pinned: address.finding, paintable: job.served,
      choose: (finding) => {
        go(finding ? { finding: finding.letter, color: finding.fill } : { finding: null });
        if (finding) see();
      },
      hover: (runs) => outline(runs ?? now.pinned?.runs ?? null, mine.info),
      paint: (finding) => {
        go({ level: "whatif", finding: finding.letter, color: finding.fill });
        byId("stage").querySelector(".view").focus({ preventScroll: true }); // where the brush is
        see();
      },
    });
    if (!now.answer.tested) byId("pending").textContent = asked.against !== null ? DIFFERENCE : job.served ? UNTESTED : UNSERVED;
    byId("test-class").hidden = now.answer.tested || asked.against !== null || !job.served;
    byId("test-class").onclick = () => test(mine, asked);
    now.pinned = now.found.find((finding) => finding.letter === address.finding) ?? null;
    outline(now.pinned?.runs ?? null, mine.info);
    byId("fill-finding").disabled = !now.found.length;
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
    byId("looking").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }

  async function test(mine, asked) {
    const { key } = now, button = byId("test-class");
    if (button.ariaDisabled) return;
    button.ariaDisabled = "true"; // not disabled: it would lose the focus
    button.textContent = "Testing…";
    try {
      const answer = await askJson(query(`jobs/${mine.id}/trials`, { target: asked.target }), { method: "POST" });
      if (now.key !== key) return;
      now.answer = answer;
      show(mine, asked);
      byId("findings").querySelector("button")?.focus({ preventScroll: true }); // what was pressed is gone
    } catch (error) {
      if (now.key === key) byId("trial-problem").textContent = error.message;
    } finally {
      button.ariaDisabled = null;
      button.textContent = "Test";
    }
  }

  return { clear, wait, load, show, chosen: () => now.pinned ?? now.found[0] ?? null };
}
