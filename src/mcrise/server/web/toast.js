// @ts-check
// Toasts: a sentence for a few seconds, some with one thing to do about it.

import { byId, el } from "./element.js";

/**
 * Those with something to do stand side by side, each for its own time; of the others the last is enough.
 * Returns the button.
 */
export function toast(words, seconds = 5, label = "", act = null) {
  const button =
    act &&
    el(
      "button",
      {
        type: "button",
        "aria-label": `${label}: ${words}`,
        onclick: () => {
          hide();
          act();
        },
      },
      label,
    );
  const made = el("div", { class: act ? "" : "plain" }, el("span", {}, words), button);
  function hide() {
    // The focus must not fall to nowhere.
    if (made.contains(document.activeElement)) byId("main").focus({ preventScroll: true });
    made.remove();
  }
  if (!act) byId("toast").querySelector(".plain")?.remove();
  byId("toast").append(made);
  setTimeout(hide, 1000 * seconds);
  return button;
}
