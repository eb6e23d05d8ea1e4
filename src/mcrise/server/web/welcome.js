// @ts-check
// Welcome: a finished example that teaches reading a map, and where to begin.

import { byStrength, drawStrip } from "./colors.js";
import { byId, el } from "./element.js";
import { at, drawBars, drawScale, shareOf, signed, unpack } from "./maps.js";
import { openNew } from "./new_job.js";
import { around } from "./outline.js";
import { makeStage } from "./stage.js";

const PICTURE = "/api/signs/stop";
let made = false;

export async function showWelcome() {
  if (made) return;
  made = true;
  const stagePlace = el("div", { class: "example-stage" }),
    scale = el("div", { class: "scale" });
  const strip = el("div", { class: "strip", role: "group", "aria-label": "Colors of the example" }),
    bars = el("div", { class: "bars" });
  const steps = el("ol", { class: "steps" });
  byId("welcome").append(
    el(
      "div",
      { class: "hero" },
      el("h1", {}, "Which colors, where in a picture, does the model’s decision depend on?"),
      el(
        "p",
        {},
        "The picture is painted at random, cell by cell, and the model is asked about each painted version. " +
          "Maps appear at once and sharpen as its answers come in.",
      ),
      el(
        "div",
        { class: "tool-line" },
        el("button", { class: "main", type: "button", onclick: openNew }, "Explain a picture"),
        el("span", { class: "hint" }, "or drop one anywhere on the page, or paste it"),
      ),
    ),
    el(
      "section",
      { class: "block example", "aria-labelledby": "example-title" },
      el("h2", { id: "example-title" }, "Reading a map in half a minute"),
      el(
        "div",
        { class: "example-body" },
        el("div", {}, stagePlace, scale, strip),
        el("div", {}, steps, el("h3", {}, "At the pointer"), bars),
      ),
    ),
  );
  const [example, maps] = await Promise.all([
    fetch("/web/example.json").then((answer) => answer.json()),
    fetch("/web/example.bin")
      .then((answer) => answer.arrayBuffer())
      .then(unpack),
  ]);
  const [finding] = example.findings,
    order = byStrength(maps).map(([name]) => name),
    [strongest] = order;
  const start = strongestPlace(maps, maps.names.indexOf(strongest));
  const here = (name) => signed(at(maps, maps.names.indexOf(name), start.down, start.across)[0], 2);
  const colors = maps.names.map((name) => example.swatches[name]);
  const point = ({ down, across }) => drawBars(bars, maps, maps, colors, down, across, order);
  const stage = makeStage(stagePlace, { moved: point, start });

  function choose(name) {
    const k = maps.names.indexOf(name),
      common = { picture: PICTURE, size: maps.size, maps, k, scale: maps };
    stage.show([
      {
        ...common,
        key: "picture",
        kind: "picture",
        alt: "A stop sign; arrow keys move the pointer",
        caption: ["The picture: the model says ", el("b", {}, `stop (${example.score.toFixed(2)})`)],
      },
      {
        ...common,
        key: "map",
        kind: "map",
        alt: `The map of ${name}; arrow keys move the pointer`,
        caption: ["The map of ", el("b", {}, name), ", read as follows"],
      },
    ]);
    drawStrip(strip, maps, maps, PICTURE, example.swatches, order, name, choose);
    point(stage.point);
  }

  const outlined = el(
    "button",
    {
      type: "button",
      class: "link",
      "aria-pressed": "false",
      onclick: () => {
        const is = outlined.getAttribute("aria-pressed") !== "true";
        outlined.setAttribute("aria-pressed", is);
        stage.outline(is ? around(finding.runs, maps.size) : "");
      },
    },
    "Show it",
  );
  steps.append(
    el(
      "li",
      {},
      el("b", { class: "lowers" }, "Purple"),
      ` lowers the score, `,
      el("b", { class: "raises" }, "orange"),
      ` raises it: painting ${strongest} below the letters moves “stop” by ${here(strongest)}.`,
    ),
    el(
      "li",
      {},
      el("b", {}, "Pale"),
      " areas could be chance. The thin line is their edge: what lies beyond it counts.",
    ),
    el(
      "li",
      {},
      el("b", {}, "Each color has its own map."),
      ` Below, strongest first. Below the letters red moves the score by ${here("red")} only, ` +
        `white by ${here("white")}: the color matters, not only the place.`,
    ),
    el(
      "li",
      {},
      el("b", {}, "A finding"),
      " says it in words and is put to the test by painting. ",
      outlined,
      el("blockquote", {}, finding.sentence),
    ),
  );
  drawScale(scale, maps, maps);
  choose(strongest);
}

/** Where map k is farthest from zero, as shares of height and width. */
function strongestPlace({ values, shape: [, rows, columns], size }, k) {
  const map = values.slice(k * rows * columns, (k + 1) * rows * columns).map(Math.abs),
    most = map.indexOf(Math.max(...map));
  return {
    down: shareOf(Math.floor(most / columns), rows, size[0]),
    across: shareOf(most % columns, columns, size[1]),
  };
}
