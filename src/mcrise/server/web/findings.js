// Findings: what the reading says, each with its color, its outline, and what came of trying it.

import { byId, el, keep, swatch } from "./element.js";

const VERDICTS = { confirmed: "confirmed", "not specific": "not specific", "no control possible": "tried", "moves nothing alone": "moves nothing alone" };

/** All findings; `pinned` is the key of the one whose outline stays. */
export function showFindings(reading, swatches, { pinned, choose, hover, attempt, paint, tryable }) {
  const found = [...reading.findings, ...reading.too_little.map((one) => ({ ...one, sentence: `${capital(one.place)}: painted alone it moves the score too little to matter.` }))];
  keep(byId("findings"), found.map((one) => ({ ...one, key: one.key })), () => makeItem(), (item, finding) => {
    item.hover = hover;
    item.runs = finding.runs;
    item.classList.toggle("pinned", finding.key === pinned);
    const button = item.querySelector(".said");
    button.setAttribute("aria-pressed", finding.key === pinned);
    button.onclick = () => choose(finding.key === pinned ? null : finding);
    button.replaceChildren(swatch(swatches[finding.fill]), el("span", {}, finding.sentence));
    const verdict = finding.tried?.verdict;
    if (item.querySelector(".do").contains(document.activeElement)) button.focus({ preventScroll: true }); // these buttons are replaced
    item.querySelector(".do").replaceChildren(
      ...(verdict ? [el("span", { class: `verdict ${VERDICTS[verdict] === "confirmed" ? "good" : ""}` }, VERDICTS[verdict] ?? verdict, ` · ${moved(finding.tried)}`)] : []),
      ...(!finding.tried && tryable ? [el("button", { type: "button", "aria-label": `Test: ${finding.fill}, ${finding.place}`, onclick: (event) => attempt(finding, event.currentTarget) }, "Test")] : []),
      ...(finding.key === pinned ? [el("button", { type: "button", onclick: () => paint(finding) }, "Paint it myself")] : []));
  });
  byId("remarks").replaceChildren(...reading.remarks.map((line) => el("li", {}, line)));
  byId("no-finding").hidden = found.length > 0 || reading.remarks.length > 0;
  byId("pending").textContent = reading.not_established;
  return found;
}

function makeItem() {
  const item = el("li", { class: "finding" }, el("button", { class: "said", type: "button" }), el("div", { class: "do" }));
  const over = (runs) => item.hover?.(runs);
  item.onmouseenter = () => over(item.runs);
  item.onmouseleave = () => over(null);
  item.addEventListener("focusin", () => over(item.runs));
  item.addEventListener("focusout", () => over(null));
  return item;
}

function moved(tried) {
  const scores = Object.values(tried.after), far = scores.reduce((most, score) => (Math.abs(score - tried.before) > Math.abs(most - tried.before) ? score : most), tried.before);
  return `${tried.before.toFixed(2)} → ${(tried.control?.here ?? far).toFixed(2)}`;
}

const capital = (words) => words[0].toUpperCase() + words.slice(1);
