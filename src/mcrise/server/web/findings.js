// Findings: the places that matter, each with its sentence, the color painted there and its outline.

import { byId, el, keep, swatch } from "./element.js";

/** All findings of a class; `pinned` is the letter of the one whose outline stays. */
export function showFindings(answer, swatches, { pinned, choose, hover, paint, paintable }) {
  const found = answer.findings ?? [];
  keep(byId("findings"), found.map((one) => ({ key: one.letter, ...one })), () => makeItem(), (item, finding) => {
    item.hover = hover;
    item.runs = finding.runs;
    item.classList.toggle("pinned", finding.letter === pinned);
    const button = item.querySelector(".said");
    button.setAttribute("aria-pressed", finding.letter === pinned);
    button.onclick = () => choose(finding.letter === pinned ? null : finding);
    button.replaceChildren(swatch(swatches[finding.fill] ?? ""), el("span", {}, finding.sentence));
    item.querySelector(".lines").replaceChildren(...finding.lines.map((line) => el("li", {}, line)));
    if (item.querySelector(".do").contains(document.activeElement)) button.focus({ preventScroll: true }); // these buttons are replaced
    item.querySelector(".do").replaceChildren(
      el("span", { class: `verdict ${finding.control?.verdict === "only here" ? "good" : ""}` }, [`${finding.before.toFixed(2)} → ${finding.after.toFixed(2)}`, finding.control?.verdict].filter(Boolean).join(" · ")),
      ...(finding.letter === pinned && paintable ? [el("button", { type: "button", onclick: () => paint(finding) }, "Paint it myself")] : []));
  });
  const remarks = [...(answer.opening ?? []), ...(answer.remarks ?? [])];
  byId("remarks").replaceChildren(...remarks.map((line) => el("li", {}, line)));
  byId("no-finding").hidden = !answer.tested || found.length > 0 || remarks.length > 0;
  byId("pending").textContent = answer.closing ?? "";
  return found;
}

function makeItem() {
  const item = el("li", { class: "finding" }, el("button", { class: "said", type: "button" }), el("ul", { class: "lines hint" }), el("div", { class: "do" }));
  const over = (runs) => item.hover?.(runs);
  item.onmouseenter = () => over(item.runs);
  item.onmouseleave = () => over(null);
  item.addEventListener("focusin", () => over(item.runs));
  item.addEventListener("focusout", () => over(null));
  return item;
}
