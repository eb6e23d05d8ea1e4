// @ts-check
// A scatter of images: how much of the map is color against the score of their class; drag to filter.

import { el, svg } from "./element.js";

const WIDE = 420,
  HIGH = 250,
  LEFT = 58,
  BOTTOM = 42,
  EDGE = 10;
const x = (share) => LEFT + share * (WIDE - LEFT - EDGE),
  y = (share) => HIGH - BOTTOM - share * (HIGH - BOTTOM - EDGE);

/** `points` have an id, share, score, wrong and words; `brushed` gets { x: [low, high], y: [low, high] } or null. */
export function scatter(points, range, open, brushed) {
  const frame = svg("svg", {
    viewBox: `0 0 ${WIDE} ${HIGH}`,
    class: "scatter",
    role: "group",
    "aria-label": "Images by how much color matters and how sure the model is",
  });
  frame.append(
    svg("path", { class: "axis", d: `M${x(0)} ${y(1)}V${y(0)}H${x(1)}` }),
    ...[0, 0.5, 1].flatMap((at) => [
      text(x(at), HIGH - 23, `${100 * at}%`, at === 1 ? "end" : "middle"),
      text(LEFT - 5, y(at) + 4, at.toFixed(1), "end"),
    ]),
    text((x(0) + x(1)) / 2, HIGH - 5, "share of the map that depends on the color", "middle"),
    svg("text", { transform: `translate(12 ${y(0.5)}) rotate(-90)`, "text-anchor": "middle" }, "score of its class"),
  );
  const box = svg("rect", { class: "brushed" });
  frame.append(
    box,
    ...points.map((one) =>
      svg(
        "circle",
        {
          cx: x(one.share),
          cy: y(one.score),
          r: 4,
          class: one.wrong ? "dot wrong" : "dot",
          onclick: () => open(one.id),
        },
        svg("title", {}, one.words),
      ),
    ),
  );
  if (range) draw(box, range);

  let from = null;
  const at = (event) => {
    const area = frame.getBoundingClientRect();
    const clip = (share) => Math.min(Math.max(share, 0), 1);
    return [
      clip((((event.clientX - area.left) / area.width) * WIDE - LEFT) / (WIDE - LEFT - EDGE)),
      clip((HIGH - BOTTOM - ((event.clientY - area.top) / area.height) * HIGH) / (HIGH - BOTTOM - EDGE)),
    ];
  };
  const spanned = (to) => ({
    x: [Math.min(from[0], to[0]), Math.max(from[0], to[0])],
    y: [Math.min(from[1], to[1]), Math.max(from[1], to[1])],
  });
  frame.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.pointerType !== "touch" && !event.target.matches(".dot")) {
      from = at(event);
      frame.setPointerCapture(event.pointerId);
    }
  });
  frame.addEventListener("pointermove", (event) => {
    if (from) draw(box, spanned(at(event)));
  });
  frame.addEventListener("pointerup", (event) => {
    if (!from) return;
    const range = spanned(at(event));
    from = null;
    brushed(range.x[1] - range.x[0] < 0.02 && range.y[1] - range.y[0] < 0.02 ? null : range);
  });
  return el(
    "figure",
    { class: "scatter-figure" },
    frame,
    el("figcaption", {}, "One dot per image; wrong answers are outlined. Drag over dots to keep only those."),
  );
}

const draw = (box, range) =>
  Object.entries({
    x: x(range.x[0]),
    y: y(range.y[1]),
    width: x(range.x[1]) - x(range.x[0]),
    height: y(range.y[0]) - y(range.y[1]),
  }).forEach(([name, value]) => box.setAttribute(name, value));
const text = (left, top, words, anchor) => svg("text", { x: left, y: top, "text-anchor": anchor }, words);
