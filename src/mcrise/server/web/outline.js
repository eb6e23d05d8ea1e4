// @ts-check
// Outlines: around a region given as runs of pixels, and where a map exceeds chance; as SVG paths.

import { shareOf } from "./maps.js";

/** Around a region: runs say how many pixels are outside, then inside, and so on, row by row. */
export function around(runs, [height, width]) {
  const inside = new Uint8Array(width * height);
  let at = 0;
  runs.forEach((n, i) => {
    inside.fill(i % 2, at, at + n);
    at += n;
  });
  if (runs.length % 2) inside.fill(1, at); // what is left goes on as it would
  return edges(inside, [height, width]);
}

/** Edges of pixels between inside and outside, those in one line together. */
export function edges(inside, [height, width]) {
  const is = (row, column) =>
    row >= 0 && row < height && column >= 0 && column < width && inside[row * width + column] === 1;
  const path = [];
  for (let row = 0; row <= height; row++) {
    for (let column = 0, from = -1; column <= width; column++) {
      const edge = column < width && is(row, column) !== is(row - 1, column);
      if (edge && from < 0) from = column;
      if (!edge && from >= 0) {
        path.push(`M${from} ${row}H${column}`);
        from = -1;
      }
    }
  }
  for (let column = 0; column <= width; column++) {
    for (let row = 0, from = -1; row <= height; row++) {
      const edge = row < height && is(row, column) !== is(row, column - 1);
      if (edge && from < 0) from = row;
      if (!edge && from >= 0) {
        path.push(`M${column} ${from}V${row}`);
        from = -1;
      }
    }
  }
  return path.join("");
}

/** Where map k exceeds what chance alone would show, upwards or downwards: marching squares on its points. */
export function contour(maps, k) {
  const [, rows, columns] = maps.shape,
    start = k * rows * columns,
    { tests } = maps;
  const [height, width] = maps.size;
  const path = [];
  for (const sign of [1, -1]) {
    const level = (row, column) => sign * tests[start + row * columns + column] - 1;
    for (let row = 0; row + 1 < rows; row++) {
      for (let column = 0; column + 1 < columns; column++) {
        const corners = [
          level(row, column),
          level(row, column + 1),
          level(row + 1, column + 1),
          level(row + 1, column),
        ];
        if (corners.every((one) => one <= 0) || corners.every((one) => one > 0)) continue;
        const places = [
          [row, column],
          [row, column + 1],
          [row + 1, column + 1],
          [row + 1, column],
        ];
        const cuts = [];
        for (let side = 0; side < 4; side++) {
          const next = (side + 1) % 4,
            [a, b] = [corners[side], corners[next]];
          if (a > 0 === b > 0) continue;
          const share = a / (a - b);
          cuts.push([0, 1].map((axis) => places[side][axis] + share * (places[next][axis] - places[side][axis])));
        }
        for (let i = 0; i + 1 < cuts.length; i += 2) {
          const text = ([r, c]) =>
            `${(shareOf(c, columns, width) * width).toFixed(1)} ${(shareOf(r, rows, height) * height).toFixed(1)}`;
          path.push(`M${text(cuts[i])}L${text(cuts[i + 1])}`);
        }
      }
    }
  }
  return path.join("");
}
