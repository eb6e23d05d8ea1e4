// @ts-check
// Maps in the browser: unpacking, coloring, and reading values off them. The report uses it too.

import { el, swatch } from "./element.js";

const FAINT = 0.25,
  STRONG = 0.9; // opacity of what chance alone may show and of the rest, as in plots.py
const MOST_SIDE = 512; // pixels that are drawn: no map has more detail

/** What `mcrise.output.web_maps.pack` wrote: its header, and values, margins (95%) and tests on its points. */
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const maps = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const n = maps.shape[0] * maps.shape[1] * maps.shape[2],
    start = 4 + length;
  const scaled = (numbers, step) => Float32Array.from(numbers, (number) => number * step);
  maps.values = scaled(new Int16Array(buffer, start, n), maps.step);
  maps.margins = scaled(new Uint16Array(buffer, start + 2 * n, n), (maps.sure_se ?? 1.96) * maps.se_step);
  maps.tested = maps.tested_step ? scaled(new Int16Array(buffer, start + 4 * n, n), maps.tested_step) : maps.values;
  maps.tests = tests(maps);
  return maps;
}

/** How far each point exceeds chance: beyond one it counts. Without a limit nothing was tested, and nothing counts. */
const tests = ({ tested, limit }) => tested.map((value) => (limit ? value / limit : 0));

/** Value and margin of map k at a place given as shares 0..1 of height and width. */
export function at(maps, k, down, across) {
  return [maps.values, maps.margins].map((numbers) => between(maps, numbers, k, down, across));
}

/** Where along n points a share 0..1 of a side lies: the points go from the first pixel's middle to the last one's. */
const along = (share, n, size) => Math.min(Math.max((share * size - 0.5) / Math.max(size - 1, 1), 0), 1) * (n - 1);

/** The share of a side at which the i-th of n points lies. */
export const shareOf = (i, n, size) => ((i / Math.max(n - 1, 1)) * (size - 1) + 0.5) / size;

function between(maps, numbers, k, down, across) {
  const [, rows, columns] = maps.shape,
    row = along(down, rows, maps.size[0]),
    column = along(across, columns, maps.size[1]);
  const top = Math.min(Math.floor(row), Math.max(rows - 2, 0)),
    left = Math.min(Math.floor(column), Math.max(columns - 2, 0));
  const read = (r, c) => numbers[(k * rows + Math.min(r, rows - 1)) * columns + Math.min(c, columns - 1)];
  const mix = (low, high, share) => low + share * (high - low);
  return mix(
    mix(read(top, left), read(top, left + 1), column - left),
    mix(read(top + 1, left), read(top + 1, left + 1), column - left),
    row - top,
  );
}

/** The color of a share 0..1 of the way along a scale. */
export function colorAt(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return [0, 1, 2].map((c) => stops[low][c] + (place - low) * (stops[low + 1][c] - stops[low][c]));
}

/** Draw map k, to be laid over the picture in gray: faint what chance alone may show, nothing below `above`. */
export function drawMap(canvas, maps, k, scale, above = 0, most = MOST_SIDE) {
  const [, rows, columns] = maps.shape,
    shrink = Math.min(1, most / Math.max(...maps.size));
  const height = Math.max(1, Math.round(maps.size[0] * shrink)),
    width = Math.max(1, Math.round(maps.size[1] * shrink));
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const table = new Uint8ClampedArray(3 * 256);
  for (let i = 0; i < 256; i++) table.set(colorAt(maps.stops, i / 255), 3 * i);
  const image = new ImageData(width, height),
    out = image.data;
  const range = scale.high - scale.low,
    start = k * rows * columns,
    { values, tests: exceeds } = maps;
  const lefts = new Int32Array(width),
    shares = new Float32Array(width);
  for (let x = 0; x < width; x++) {
    const place = along((x + 0.5) / width, columns, maps.size[1]);
    lefts[x] = Math.min(Math.floor(place), Math.max(columns - 2, 0));
    shares[x] = place - lefts[x];
  }
  const line = new Float32Array(columns + 1),
    beyond = new Float32Array(columns + 1);
  for (let y = 0; y < height; y++) {
    const place = along((y + 0.5) / height, rows, maps.size[0]);
    const top = Math.min(Math.floor(place), Math.max(rows - 2, 0)),
      share = place - top;
    const upper = start + top * columns,
      lower = start + Math.min(top + 1, rows - 1) * columns;
    for (let c = 0; c < columns; c++) {
      line[c] = values[upper + c] + share * (values[lower + c] - values[upper + c]);
      beyond[c] = exceeds[upper + c] + share * (exceeds[lower + c] - exceeds[upper + c]);
    }
    line[columns] = line[columns - 1];
    beyond[columns] = beyond[columns - 1];
    for (let x = 0; x < width; x++) {
      const left = lefts[x],
        value = line[left] + shares[x] * (line[left + 1] - line[left]);
      const size = Math.abs(value);
      let opacity = STRONG;
      if (maps.diverging) {
        if (size < above) continue;
        const test = beyond[left] + shares[x] * (beyond[left + 1] - beyond[left]);
        // Near zero the map is white: let the picture through there, so that one sees what is where.
        opacity = (test > 1 || test < -1 ? STRONG : FAINT) * Math.min(Math.max(size / (0.25 * scale.high), 0.35), 1);
      }
      const color = 3 * Math.round(255 * Math.min(Math.max((value - scale.low) / range, 0), 1)),
        to = 4 * (y * width + x);
      out[to] = table[color];
      out[to + 1] = table[color + 1];
      out[to + 2] = table[color + 2];
      out[to + 3] = 255 * opacity;
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** One scale for several sets of maps. */
export function sharedScale(rows) {
  return { low: Math.min(...rows.map((maps) => maps.low)), high: Math.max(...rows.map((maps) => maps.high)) };
}

export function signed(value, digits = 3) {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
}

/** No more digits than are known, at least two. */
export function digitsFor(margin) {
  return margin > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(margin) + 1), 2), 5) : 2;
}

/** Value and 95% interval of every color at one place, as small bars. */
export function drawBars(place, maps, scale, swatches, down, across, order = maps.names) {
  const low = maps.diverging ? -Math.max(-scale.low, scale.high) : scale.low;
  const span = (maps.diverging ? -low : scale.high) - low;
  const share = (value) => (value - low) / span;
  const zero = maps.diverging ? 0.5 : 0;
  const [row, column] = pixelOf(maps, down, across);
  place.replaceChildren(
    el("div", { class: "head" }, `${maps.label}: row ${row}, column ${column}`),
    ...order
      .filter((name) => maps.names.includes(name))
      .map((name) => {
        const k = maps.names.indexOf(name);
        const [value, margin] = at(maps, k, down, across),
          digits = digitsFor(margin);
        const bar = el("i", { class: value < 0 ? "value low" : "value" }),
          whisker = el("i", { class: "error" });
        const middle = el("i", { class: "zero" });
        spread(bar, Math.min(share(value), zero), Math.max(share(value), zero));
        spread(whisker, share(value - margin), share(value + margin));
        middle.style.left = `${100 * zero}%`;
        const over = share(value) > 1 ? "over" : share(value) < 0 ? "under" : "";
        const words = maps.diverging ? signed(value, digits) : value.toFixed(digits);
        return el(
          "div",
          { class: "bar" },
          swatch(swatches[k]),
          el("span", { class: "name", title: name }, name),
          el("div", { class: `track ${over}` }, bar, whisker, middle),
          el("span", { class: "number" }, `${words} ± ${margin.toFixed(digits)}`),
        );
      }),
  );
}

/** The pixel at a place given as shares. */
export function pixelOf(maps, down, across) {
  return [down, across].map((share, i) => Math.min(Math.floor(share * maps.size[i]), maps.size[i] - 1));
}

function spread(bar, low, high) {
  const [left, right] = [low, high].map((share) => Math.min(Math.max(share, 0), 1));
  bar.style.left = `${100 * left}%`;
  bar.style.width = `${100 * (right - left)}%`;
}

/** The scale with its ends named; where a value lies beyond, the end says so. */
export function drawScale(place, maps, scale) {
  const canvas = el("canvas", { "aria-hidden": "true" });
  Object.assign(canvas, { width: 256, height: 1 });
  const context = canvas.getContext("2d");
  for (let i = 0; i < 256; i++) {
    context.fillStyle = `rgb(${colorAt(maps.stops, i / 255)
      .map(Math.round)
      .join(" ")})`;
    context.fillRect(i, 0, 1, 1);
  }
  const digits = scale.high < 0.01 ? 4 : scale.high < 0.1 ? 3 : 2,
    tiny = Math.max(scale.high, -scale.low) < 1e-4;
  const text = (value) =>
    tiny ? value.toExponential(0) : maps.diverging ? signed(value, digits) : value.toFixed(digits);
  place.replaceChildren(
    canvas,
    el(
      "div",
      {},
      el("span", {}, (maps.least < scale.low ? "≤ " : "") + text(scale.low)),
      el("span", {}, maps.unit),
      el("span", {}, (maps.most > scale.high ? "≥ " : "") + text(scale.high)),
    ),
  );
}
