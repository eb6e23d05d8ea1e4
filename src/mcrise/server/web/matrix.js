// @ts-check
// A matrix of classes and colors: the mean effect of each color on the images of each class.

import { el, swatch } from "./element.js";
import { signed } from "./maps.js";

const LOW = [84, 39, 136],
  HIGH = [179, 88, 6]; // purple and orange, as the maps' ends
const MOST_CLASSES = 40;

/**
 * `classes` have a name, n, effects by color, and perhaps a share of right answers;
 * `open` is called with the class and the color of a cell.
 */
export function matrix(classes, colors, chosen, open) {
  const most = Math.max(1e-9, ...classes.flatMap((one) => colors.map(({ name }) => Math.abs(one.effects[name] ?? 0))));
  const judged = classes.some((one) => one.accuracy !== null);
  const right = (one) => (one.accuracy === null ? "" : `${Math.round(100 * one.accuracy)}%`);
  const rows = classes.slice(0, MOST_CLASSES).map((one) =>
    el(
      "tr",
      { class: chosen(one) ? "chosen" : "" },
      el(
        "th",
        { scope: "row" },
        el(
          "button",
          {
            type: "button",
            class: "cell name",
            title: one.name,
            "aria-pressed": chosen(one),
            onclick: () => open(one, null),
          },
          one.name,
        ),
      ),
      el("td", { class: "n" }, `${one.n}`),
      judged ? el("td", { class: "n" }, right(one)) : null,
      ...colors.map(({ name }) => el("td", {}, cell(one, name, most, open))),
    ),
  );
  return el(
    "div",
    { class: "matrix", tabindex: 0, role: "region", "aria-label": "Mean effect of each color on each class" },
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, classes.length === 1 ? "1 class" : `${classes.length} classes`),
          el("th", { scope: "col", class: "n" }, "Images"),
          judged ? el("th", { scope: "col", class: "n" }, "Right") : null,
          ...colors.map((color) =>
            el("th", { scope: "col" }, el("span", { class: "color-head" }, swatch(color.swatch), color.name)),
          ),
        ),
      ),
      el("tbody", {}, ...rows),
    ),
    classes.length > MOST_CLASSES
      ? el("p", { class: "hint" }, `The ${MOST_CLASSES} classes with most images of ${classes.length}.`)
      : null,
  );
}

function cell(one, name, most, open) {
  const value = one.effects[name];
  if (value === undefined) return "";
  const text = signed(value, most < 0.05 ? 3 : 2);
  const made = el(
    "button",
    { type: "button", class: "cell", "aria-label": `${one.name}, ${name}: ${text}`, onclick: () => open(one, name) },
    text,
  );
  const share = Math.min(Math.abs(value) / most, 1),
    [red, green, blue] = value < 0 ? LOW : HIGH;
  made.style.background = `rgb(${red} ${green} ${blue} / ${0.55 * share})`; // so that the number stays readable
  return made;
}
