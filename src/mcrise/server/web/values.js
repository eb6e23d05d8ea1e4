// @ts-check
// Values: what every map says at the pointer, beside it. Spoken at most once a second, so that there is room for news.

import { byId, el } from "./element.js";
import { at, digitsFor, drawBars, pixelOf, signed } from "./maps.js";

const AWAY = 18; // pixels from the pointer
let timer = null;

/** Bars of each row of maps; `k` is the color that is looked at, and is spoken where somebody pointed. */
export function showValues({ rows, scales, swatches, order }, point, k, event) {
  byId("values").replaceChildren(
    ...rows.map((maps, i) => {
      const bars = el("div", { class: "bars" }),
        colors = maps.per_fill ? maps.names.map((name) => swatches[name]) : [];
      drawBars(bars, maps, scales[i], colors, point.down, point.across, order);
      return bars;
    }),
  );
  if (!event) return;
  place(event);
  timer ??= setTimeout(() => {
    timer = null;
    speak(rows[0], point, Math.min(k, rows[0].names.length - 1));
  }, 1000);
}

/** Put the values beside the pointer, where they cover neither it nor the edge of the window. */
function place(event) {
  const tip = byId("tip");
  tip.hidden = false;
  const ring = event.currentTarget.querySelector(".pointer").getBoundingClientRect();
  const { clientX: x = ring.x + ring.width / 2, clientY: y = ring.y + ring.height / 2 } = event;
  const { offsetWidth: width, offsetHeight: height } = tip;
  const left = x + AWAY + width < innerWidth ? x + AWAY : Math.max(x - AWAY - width, 4);
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(4, Math.min(y + AWAY, innerHeight - height - 4))}px`;
}

export const hideValues = () => {
  byId("tip").hidden = true;
};

function speak(maps, { down, across }, k) {
  const [value, margin] = at(maps, k, down, across),
    digits = digitsFor(margin),
    [row, column] = pixelOf(maps, down, across);
  const words = `${maps.names[k]} ${signed(value, digits)} ± ${margin.toFixed(digits)}`;
  byId("spoken").textContent = `Row ${row}, column ${column}: ${words}`;
}
