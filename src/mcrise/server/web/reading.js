// A reading: what the maps of a class say, finding by finding, and what came of trying them.

import { go } from "./address.js";
import { askJson, query } from "./api.js";
import { byId } from "./element.js";
import { showFindings } from "./findings.js";
import { around } from "./outline.js";

const UNTRIED = "The difference of two classes is not tested: open one class alone to test its findings.";
const NOTHING = { key: "", answer: null, found: [], pinned: null };

/** The reading beside a stage, on which findings are outlined. */
export function makeReading(stage) {
  let now = NOTHING;
  const paths = new WeakMap(); // outlines by their runs

  /** Take away what was said of other maps. */
  function clear(words = "") {
    now = NOTHING;
    byId("findings-block").setAttribute("aria-busy", "true");
    for (const one of ["findings", "remarks"]) byId(one).replaceChildren();
    byId("no-finding").hidden = true;
    byId("trial-problem").textContent = "";
    byId("pending").textContent = words;
    outline(null);
  }

  /** Say why nothing is said yet. */
  function wait(words) {
    if (!now.answer) byId("pending").textContent = words;
  }

  /** Read the maps that `key` stands for; what comes when others are looked at is left. */
  async function load(mine, key, asked) {
    if (now.key === key) return;
    now = { ...now, key };
    wait("Reading the maps of this class…");
    try {
      const answer = await askJson(query(`jobs/${mine.id}/reading`, asked));
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
      pinned: address.finding, tryable: job.served && asked.against === null,
      choose: (finding) => {
        go(finding ? { finding: finding.key, color: finding.fill } : { finding: null });
        if (finding) see();
      },
      hover: (runs) => outline(runs ?? now.pinned?.runs ?? null, mine.info),
      attempt: (finding, button) => attempt(mine, asked, finding, button),
      paint: (finding) => {
        go({ level: "whatif", finding: finding.key, color: finding.fill });
        byId("stage").querySelector(".view").focus({ preventScroll: true }); // where the brush is
        see();
      },
    });
    if (asked.against !== null && now.found.length) byId("pending").textContent += ` ${UNTRIED}`;
    now.pinned = now.found.find((finding) => finding.key === address.finding) ?? null;
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

  async function attempt(mine, asked, finding, button) {
    const { key } = now, { target, estimator } = asked;
    if (button.ariaDisabled) return;
    button.ariaDisabled = "true"; // not disabled: it would lose the focus
    button.textContent = "Testing…";
    try {
      const answer = await askJson(query(`jobs/${mine.id}/trials`, { target, estimator, finding: finding.key }), { method: "POST" });
      if (now.key !== key) return;
      now.answer = answer;
      go({ finding: finding.key, color: finding.fill }, { replace: true });
      show(mine, asked);
    } catch (error) {
      byId("trial-problem").textContent = error.message;
      button.ariaDisabled = null;
      button.textContent = "Test";
    }
  }

  return { clear, wait, load, show, chosen: () => now.pinned ?? now.found[0] ?? null };
}
