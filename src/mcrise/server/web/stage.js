// @ts-check
// The stage: the picture and its maps side by side, locked together in zoom, pointer and outlines.

import { el, keep, svg } from "./element.js";
import { drawMap } from "./maps.js";
import { contour } from "./outline.js";

const MOST_ZOOM = 16;
const WIDE = 2; // times as wide as high: such pictures stand one below the other
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Panes in `place`. `moved` is called with the place under the pointer as shares of height and width;
 * `brush` gets strokes on the picture where it says that it is active; the pointer is at `start` first.
 */
export function makeStage(place, { moved, brush = null, start = { down: 0.5, across: 0.5 } }) {
  let panes = [],
    point = start,
    region = "",
    looks = { above: 0, strength: 1, contours: true };
  let zoom = { scale: 1, top: 0, left: 0 };

  function show(wanted) {
    panes = wanted;
    keep(place, panes, makePane, updatePane);
    place.classList.toggle("many", panes.length > 2);
    place.classList.toggle("four", panes.length > 3);
    place.classList.toggle(
      "wide",
      panes.some(({ size: [height, width] }) => width > WIDE * height),
    );
    turn();
    mark();
  }

  function makePane(pane) {
    const layers = [el("img", { class: "photo", alt: "" })];
    if (pane.kind === "map")
      layers.push(el("div", { class: "veil" }, el("img", { class: "photo", alt: "" })), el("canvas", { class: "map" }));
    else layers.push(el("canvas", { class: "paint" }));
    layers.push(
      svg(
        "svg",
        { class: "marks", preserveAspectRatio: "none" },
        svg("path", { class: "contour under" }),
        svg("path", { class: "contour" }),
        svg("path", { class: "region under" }),
        svg("path", { class: "region" }),
        svg("ellipse", { class: "pointer under" }),
        svg("ellipse", { class: "pointer" }),
        svg("ellipse", { class: "reach under" }),
        svg("ellipse", { class: "reach" }),
      ),
    );
    const view = el("div", { class: "view", tabindex: 0, role: "img" }, el("div", { class: "sheet" }, ...layers));
    listen(view, pane.kind);
    return el("figure", { class: `pane ${pane.kind}` }, view, el("figcaption"));
  }

  function updatePane(figure, pane) {
    const view = figure.querySelector(".view"),
      [height, width] = pane.size;
    view.style.setProperty("--ratio", width / height);
    view.setAttribute("aria-label", pane.alt);
    figure.querySelector("figcaption").replaceChildren(...pane.caption);
    for (const image of figure.querySelectorAll("img"))
      if (image.getAttribute("src") !== pane.picture) image.src = pane.picture;
    const marks = figure.querySelector(".marks");
    marks.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const lines = looks.contours && pane.maps?.diverging ? contour(pane.maps, pane.k) : "";
    for (const path of marks.querySelectorAll(".contour")) path.setAttribute("d", lines);
    if (pane.kind === "map") paint(figure, pane);
  }

  const paint = (figure, pane) =>
    drawMap(figure.querySelector("canvas.map"), pane.maps, pane.k, pane.scale, looks.above);

  /** How maps are drawn: `above` which value, how strong, with contours or without. */
  function look(changes) {
    const before = looks;
    looks = { ...looks, ...changes };
    place.style.setProperty("--strength", looks.strength);
    if (looks.above !== before.above) panes.forEach((pane, i) => pane.kind === "map" && paint(place.children[i], pane));
    if (looks.contours !== before.contours) panes.forEach((pane, i) => updatePane(place.children[i], pane));
  }

  // ---- marks

  function mark() {
    panes.forEach((pane, i) => {
      const figure = place.children[i],
        [height, width] = pane.size,
        box = figure.querySelector(".view").clientWidth || width;
      const reach = width / box / zoom.scale; // of one pixel of the screen
      for (const ring of figure.querySelectorAll(".pointer"))
        set(ring, { cx: point.across * width, cy: point.down * height, rx: 7 * reach, ry: 7 * reach });
      const size = brush?.active() && pane.kind === "picture" ? brush.reach() * width : 0;
      for (const ring of figure.querySelectorAll(".reach"))
        set(ring, { cx: point.across * width, cy: point.down * height, rx: size, ry: size });
      const path = pane.region ?? region;
      for (const line of figure.querySelectorAll(".region"))
        if (line.getAttribute("d") !== path) line.setAttribute("d", path);
    });
  }

  const set = (shape, values) => Object.entries(values).forEach(([name, value]) => shape.setAttribute(name, value));

  function pointAt(place, event) {
    point = { down: Math.min(Math.max(place.down, 0), 0.99999), across: Math.min(Math.max(place.across, 0), 0.99999) };
    mark();
    moved(point, event);
  }

  // ---- zoom

  function turn() {
    zoom.scale = Math.min(Math.max(zoom.scale, 1), MOST_ZOOM);
    for (const side of ["top", "left"]) zoom[side] = Math.min(Math.max(zoom[side], 0), 1 - 1 / zoom.scale);
    for (const sheet of place.querySelectorAll(".sheet")) {
      sheet.style.transform = `scale(${zoom.scale}) translate(${-100 * zoom.left}%, ${-100 * zoom.top}%)`;
    }
    place.classList.toggle("zoomed", zoom.scale > 1);
    place.style.setProperty("--zoom", zoom.scale); // lines stay as thin as they are
    mark();
  }

  /** Enlarge by a factor, so that the place under the pointer stays where it is. */
  function zoomBy(factor, about = point) {
    const scale = Math.min(Math.max(zoom.scale * factor, 1), MOST_ZOOM),
      share = 1 / scale;
    const kept = { down: (about.down - zoom.top) * zoom.scale, across: (about.across - zoom.left) * zoom.scale };
    zoom = { scale, top: about.down - kept.down * share, left: about.across - kept.across * share };
    turn();
  }

  // ---- what the hand does

  function listen(view, kind) {
    const placeOf = (event) => {
      const box = view.getBoundingClientRect();
      return {
        down: zoom.top + (event.clientY - box.top) / box.height / zoom.scale,
        across: zoom.left + (event.clientX - box.left) / box.width / zoom.scale,
      };
    };
    let grabbed = null,
      painting = false;
    const paints = (event) =>
      brush?.active() && kind === "picture" && event.button === 0 && event.pointerType !== "touch";
    view.addEventListener("pointerdown", (event) => {
      pointAt(placeOf(event), event);
      if (paints(event)) {
        painting = true;
        brush.begin(point, event);
      } else if (zoom.scale > 1 && event.button < 2 && event.pointerType !== "touch")
        grabbed = { x: event.clientX, y: event.clientY, ...zoom };
      else return;
      view.setPointerCapture(event.pointerId);
      if (event.button === 1) event.preventDefault();
    });
    view.addEventListener("pointermove", (event) => {
      if (grabbed) {
        const box = view.getBoundingClientRect();
        zoom.left = grabbed.left - (event.clientX - grabbed.x) / box.width / zoom.scale;
        zoom.top = grabbed.top - (event.clientY - grabbed.y) / box.height / zoom.scale;
        turn();
        return;
      }
      if (event.pointerType === "touch") return; // a finger scrolls; a tap points
      const places = painting ? (event.getCoalescedEvents?.() ?? [event]) : [];
      places.forEach((one) => brush.draw(placeOf(one)));
      pointAt(placeOf(event), event);
    });
    const release = () => {
      if (painting) brush.end();
      painting = false;
      grabbed = null;
    };
    view.addEventListener("pointerup", release);
    view.addEventListener("pointercancel", release);
    view.addEventListener("click", (event) => {
      if (event.pointerType === "touch" && brush?.active() && kind === "picture") {
        brush.begin(placeOf(event), event);
        brush.end();
      }
    });
    view.addEventListener(
      "wheel",
      (event) => {
        if (zoom.scale === 1 && event.deltaY > 0) return; // whole already: the page scrolls
        event.preventDefault();
        zoomBy(2 ** (-event.deltaY / 400), placeOf(event));
      },
      { passive: false },
    );
    view.addEventListener("keydown", (event) => {
      if (event.key === " " && brush?.active() && kind === "picture") {
        brush.begin(point, event);
        brush.end();
      } else if (event.key === "+" || event.key === "=") zoomBy(1.5);
      else if (event.key === "-") zoomBy(1 / 1.5);
      else if (event.key === "0") {
        zoom = { scale: 1, top: 0, left: 0 };
        turn();
      } else if (event.key in STEPS) {
        const reach = (event.shiftKey ? 1 / 256 : 1 / 32) / zoom.scale,
          [down, across] = STEPS[event.key];
        pointAt({ down: point.down + reach * down, across: point.across + reach * across }, event);
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  new ResizeObserver(mark).observe(place);
  return {
    show,
    look,
    mark,
    zoomBy,
    reset: () => {
      zoom = { scale: 1, top: 0, left: 0 };
      turn();
    },
    outline: (path) => {
      region = path;
      mark();
    },
    paintCanvas: () => place.querySelector("canvas.paint"),
    get point() {
      return point;
    },
  };
}
