// Values: what every map says at the pointer, and its scale. Spoken at most once a second, so that there is room for news.

import { byId, el } from "./element.js";
import { at, digitsFor, drawBars, pixelOf, signed } from "./maps.js";

let timer = null;

/** Bars of each row of maps; `k` is the color that is looked at, and is spoken where somebody pointed. */
export function showValues(rows, scales, swatches, order, point, k, pointed) {
  byId("values").replaceChildren(...rows.map((maps, i) => {
    const bars = el("div", { class: "bars" });
    drawBars(bars, maps, scales[i], maps.per_fill ? maps.names.map((name) => swatches[name]) : [], point.down, point.across, order);
    return bars;
  }));
  if (pointed) timer ??= setTimeout(() => { timer = null; speak(rows[0], point, Math.min(k, rows[0].names.length - 1)); }, 1000);
}

function speak(maps, { down, across }, k) {
  const [value, margin] = at(maps, k, down, across), digits = digitsFor(margin), [row, column] = pixelOf(maps, down, across);
  byId("spoken").textContent = `Row ${row}, column ${column}: ${maps.names[k]} ${signed(value, digits)} ± ${margin.toFixed(digits)}`;
}
