// @ts-check
// Colors: a small map of each, strongest first; the one that is chosen is shown large.

import { byId, el, keep, svg, swatch } from "./element.js";
import { drawMap, drawScale } from "./maps.js";

/** The colors of some maps, strongest first: [name, k]. */
export function byStrength(maps) {
  return maps.names.map((name, k) => [name, k]).sort((one, other) => maps.strengths[other[1]] - maps.strengths[one[1]]);
}

/** A line of panels for each set of maps, all in one order; with `own` scales, each line has its scale. */
export function showColors(rows, scales, pictures, swatches, order, chosen, own, choose) {
  const make = () => el("div", {}, el("h3"), el("div", { class: "strip" }), el("div", { class: "scale" }));
  keep(
    byId("colors"),
    rows.map((maps, i) => ({ key: `${i}`, maps, i })),
    make,
    (line, { maps, i }) => {
      const scale = line.querySelector(".scale");
      scale.hidden = !own;
      if (own) drawScale(scale, maps, maps);
      line.querySelector("h3").textContent = rows.length > 1 ? maps.label : "";
      line.querySelector("h3").hidden = rows.length === 1;
      drawStrip(line.querySelector(".strip"), maps, scales[i], pictures[i], swatches, order, chosen, choose);
    },
  );
}

/** A line of panels: those that the maps have, in an order. */
export function drawStrip(place, maps, scale, picture, swatches, order, chosen, choose) {
  const there = order.filter((name) => maps.names.includes(name));
  keep(
    place,
    there.map((name, n) => ({ key: name, name, n })),
    ({ name }) => makePanel(name, swatches[name], choose),
    (panel, { name, n }) => {
      panel.setAttribute("aria-pressed", name === chosen);
      panel.setAttribute("aria-label", `${maps.label}: ${name}`);
      panel.title = n < 9 ? `${name} (key ${n + 1})` : name;
      for (const image of panel.querySelectorAll("img")) if (image.getAttribute("src") !== picture) image.src = picture;
      panel.querySelector(".sheet").style.setProperty("--ratio", maps.size[1] / maps.size[0]);
      panel.querySelector(".marks").setAttribute("viewBox", `0 0 ${maps.size[1]} ${maps.size[0]}`);
      drawMap(panel.querySelector("canvas"), maps, maps.names.indexOf(name), scale, 0, 128);
    },
  );
}

function makePanel(name, color, choose) {
  return el(
    "button",
    { class: "panel", type: "button", onclick: () => choose(name) },
    el(
      "span",
      { class: "sheet" },
      el("span", { class: "veil" }, el("img", { class: "photo", alt: "" })),
      el("canvas"),
      svg(
        "svg",
        { class: "marks", preserveAspectRatio: "none" },
        svg("path", { class: "region under" }),
        svg("path", { class: "region" }),
      ),
    ),
    el("span", { class: "name" }, color ? swatch(color) : null, el("span", {}, name)),
  );
}
