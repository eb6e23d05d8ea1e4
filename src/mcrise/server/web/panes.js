// Panes: what is shown large, and how to read it.

import { el } from "./element.js";

/** Each picture once, and a map of each row, of the color that is chosen. */
export function panesOf(rows, pictures, scales, color, name) {
  return rows.flatMap((maps, i) => {
    const k = Math.max(maps.names.indexOf(color), 0), picture = pictures[i], { size } = maps;
    const map = {
      key: `map ${i}`, kind: "map", picture, size, maps, k, scale: scales[i], alt: `Map of ${maps.label} for ${maps.names[k]}`,
      caption: [el("b", {}, maps.label), ` · ${maps.names[k]} · ${maps.estimator}, ${maps.n_masks.toLocaleString("en")} masks`],
    };
    if (pictures.indexOf(picture) !== i) return [map];
    const words = i ? "The other picture" : "The picture";
    return [{ key: `picture ${i}`, kind: "picture", picture, size, alt: `${words} ${i ? "" : name}; arrow keys move the pointer`, caption: [words] }, map];
  });
}

/** What the colors of the rows that are shown mean. */
export function hint(rows) {
  const [maps] = rows;
  if (!maps.diverging) return "Each value is the mean score where that place is kept: only differences within the map count. Findings are read from the smooth maps.";
  const several = rows.length > 1, deed = maps.per_fill ? "painting this place with that color" : "keeping this place, rather than painting it with any of the colors,";
  const limits = rows.map(({ label, limit, tested_step: other }) => `±${limit.toPrecision(2)}${other ? " in the centered maps" : ""}${several ? ` for ${label}` : ""}`);
  const last = rows.length > 2 ? ` The last row is the first less the second: orange where ${maps.per_fill ? "painting" : "keeping"} does more for the first.` : "";
  return `Orange: ${deed} raises the score; purple: lowers it.${last} Pale areas (below ${limits.join(", ")}) could be chance; the contour is their edge.`;
}
