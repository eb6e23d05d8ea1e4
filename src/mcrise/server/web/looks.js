// @ts-check
// Looks: how maps are drawn, by sliders, boxes and buttons. What they say is in the address.

import { byId, el } from "./element.js";
import { go } from "./store.js";
import { toast } from "./toast.js";

/** The controls below and above a stage. */
export function makeLooks(stage, server) {
  const replace = { replace: true };
  const showAbove = (above) => {
    byId("above-value").textContent = above ? above.toPrecision(2) : "0";
  };
  const aboveNow = () => Number(byId("above").value),
    strengthNow = () => Number(byId("strength").value);

  byId("estimator").append(...server.estimators.map((name) => el("option", {}, name)));
  byId("estimator").onchange = () => go({ estimator: byId("estimator").value, finding: null });
  byId("strength").oninput = () => stage.look({ strength: strengthNow() });
  byId("strength").onchange = () => go({ map: strengthNow() === 1 ? null : strengthNow() }, replace);
  byId("above").oninput = () => {
    stage.look({ above: aboveNow() });
    showAbove(aboveNow());
  };
  byId("above").onchange = () => go({ above: aboveNow() ? aboveNow().toPrecision(3) : null }, replace);
  byId("contours").onchange = () => go({ contours: byId("contours").checked ? null : "no" }, replace);
  byId("own-scales").onchange = () => go({ scale: byId("own-scales").checked ? "row" : null }, replace);
  byId("zoom-in").onclick = () => stage.zoomBy(1.5);
  byId("zoom-out").onclick = () => stage.zoomBy(1 / 1.5);
  byId("zoom-all").onclick = () => stage.reset();
  byId("swap").onclick = swap;
  const menu = byId("view-menu");
  document.addEventListener("pointerdown", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.onkeydown = (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  };
  byId("copy").onclick = () =>
    navigator.clipboard.writeText(location.href).then(
      () => toast("The link is copied."),
      () => toast(location.href, 15),
    );

  function swap() {
    const swapped = byId("stage").classList.toggle("swapped");
    byId("swap").textContent = swapped ? "Show map" : "Hide map";
  }

  /** As the address has it; before there are maps too. */
  function follow({ contours, map }) {
    const strength = Math.min(Math.max(Number(map ?? 1), 0), 1);
    stage.look({ contours: contours !== "no", strength });
    byId("contours").checked = contours !== "no";
    byId("strength").value = strength;
  }

  /** For some rows of maps; `one` is the scale that they share. */
  function show(rows, one, own, estimator, above) {
    stage.look({ above });
    byId("estimator").value = estimator;
    byId("own-scales-line").hidden = rows.length === 1;
    byId("own-scales").checked = own;
    Object.assign(byId("above"), { max: one.high, step: one.high / 100, value: above, disabled: !rows[0].diverging });
    showAbove(above);
  }

  return { follow, show, swap };
}
