// @ts-check
// The what-if brush: paint on the picture and see the scores move.

import { askJson, query } from "./api.js";
import { byId, el, keep, swatch } from "./element.js";

const MOST_STEPS = 20; // that can be undone
const MOST_PICKED = 8;

/** A brush for a job's picture; `stage` is where it is drawn, `target` gives the class looked at. */
export function makeBrush(id, info, stage, target) {
  const [height, width] = info.size;
  let places = new Uint8Array(width * height); // 0 keeps, k paints the k-th paint
  const picked = []; // colors of the picture's own, beyond the job's
  const pictures = new Map(); // of paints, as they are first used
  const past = []; // to be undone
  let paint = info.fills.length > 1 ? 2 : 1,
    future = [],
    last = null,
    picking = false,
    busy = false,
    again = false;

  const paints = () => [
    { name: "original", swatch: "" },
    ...info.fills,
    ...picked.map((color) => ({ name: color, swatch: color })),
  ];
  const reach = () => Number(byId("brush-size").value);

  function showPaints() {
    keep(
      byId("paints"),
      paints().map((one, k) => ({ key: `${k}`, ...one, k })),
      ({ name, k, swatch: color }) =>
        el(
          "label",
          { class: "chip" },
          el("input", { type: "radio", name: "paint", value: k, onchange: () => choose(k) }),
          el("span", {}, swatch(color), name),
        ),
      (chip, { k }) => {
        chip.querySelector("input").checked = k === paint;
      },
    );
    const had = document.activeElement.id,
      able = { undo: past.length > 0, redo: future.length > 0, clear: places.some((one) => one) };
    for (const [one, is] of Object.entries(able)) byId(one).disabled = !is;
    if (able[had] === false) byId(had === "undo" ? "redo" : "undo").focus(); // a disabled button would lose it
  }

  async function choose(k) {
    paint = k;
    showPaints();
    await pictureOf(k);
  }

  /** The pixels of a paint: of a plain color just that. */
  async function pictureOf(k) {
    if (k === 0 || pictures.has(k)) return;
    const color = k > info.fills.length ? picked[k - info.fills.length - 1] : null;
    pictures.set(k, color ? plain(color) : await pixelsOf(`/api/jobs/${id}/fills/${k - 1}`));
  }

  const plain = (color) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
    const pixels = new Uint8ClampedArray(4 * width * height);
    for (let i = 0; i < pixels.length; i += 4) pixels.set([red, green, blue, 255], i);
    return pixels;
  };

  // ---- painting

  function remember() {
    past.push(places.slice());
    if (past.length > MOST_STEPS) past.shift();
    future = [];
  }

  function dab({ down, across }) {
    const row = down * height,
      column = across * width,
      size = reach() * width;
    for (let r = Math.max(0, Math.floor(row - size)); r <= Math.min(height - 1, row + size); r++) {
      for (let c = Math.max(0, Math.floor(column - size)); c <= Math.min(width - 1, column + size); c++) {
        if (Math.hypot(r + 0.5 - row, c + 0.5 - column) <= size) places[r * width + c] = paint;
      }
    }
  }

  /** From the last place to this one in steps smaller than the brush, so that no gap is left. */
  function stroke(to) {
    const from = last ?? to,
      step = Math.max(reach() / 3, 1 / width);
    const far = Math.hypot(((to.down - from.down) * height) / width, to.across - from.across),
      n = Math.max(1, Math.ceil(far / step));
    for (let i = 1; i <= n; i++)
      dab({
        down: from.down + ((to.down - from.down) * i) / n,
        across: from.across + ((to.across - from.across) * i) / n,
      });
    last = to;
    draw();
    store();
    showPaints();
    tell();
  }

  function draw() {
    const canvas = stage.paintCanvas();
    if (!canvas) return;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const image = new ImageData(width, height),
      out = new Uint32Array(image.data.buffer);
    const words = new Map([...pictures].map(([k, pixels]) => [k, new Uint32Array(pixels.buffer)]));
    for (let i = 0; i < places.length; i++) if (places[i]) out[i] = words.get(places[i])?.[i] ?? 0;
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  async function restore(from, to) {
    if (!from.length) return;
    to.push(places);
    places = from.pop();
    changed();
  }

  function changed() {
    draw();
    store();
    showPaints();
    tell();
  }

  // What was painted stays when the tab is loaded again: one painting per job, in runs of equal pixels.

  function store() {
    const runs = [];
    for (let i = 0; i < places.length; i++) {
      if (i && places[i] === places[i - 1]) runs[runs.length - 1][1] += 1;
      else runs.push([places[i], 1]);
    }
    try {
      if (runs.length === 1 && !runs[0][0]) sessionStorage.removeItem(`painting ${id}`);
      else sessionStorage.setItem(`painting ${id}`, JSON.stringify({ runs, picked }));
    } catch {
      /* there is no room for it */
    }
  }

  async function restoreStored() {
    const stored = JSON.parse(sessionStorage.getItem(`painting ${id}`) ?? "null");
    if (!stored) return;
    picked.push(...stored.picked);
    let at = 0;
    for (const [k, n] of stored.runs) {
      places.fill(k, at, at + n);
      at += n;
    }
    await Promise.all([...new Set(places)].map(pictureOf));
    changed();
  }

  async function fill(runs) {
    await pictureOf(paint);
    remember();
    let at = 0;
    runs.forEach((n, i) => {
      if (i % 2) places.fill(paint, at, at + n);
      at += n;
    });
    if (runs.length % 2) places.fill(paint, at);
    changed();
  }

  async function pick({ down, across }) {
    const pixels = await pixelsOf(`/api/jobs/${id}/image.png`);
    const at = 4 * (Math.floor(down * height) * width + Math.floor(across * width));
    const color = `#${[0, 1, 2].map((c) => pixels[at + c].toString(16).padStart(2, "0")).join("")}`;
    if (!picked.includes(color) && picked.length < MOST_PICKED) picked.push(color);
    setPicking(false);
    if (picked.includes(color)) choose(info.fills.length + 1 + picked.indexOf(color));
  }

  function setPicking(is) {
    picking = is;
    byId("pick").setAttribute("aria-pressed", is);
    byId("stage").classList.toggle("picking", is);
  }

  // ---- asking

  async function tell() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    byId("odds").setAttribute("aria-busy", "true");
    do {
      again = false;
      try {
        const path = query(`jobs/${id}/whatif`, { target: target(), paints: picked.length ? picked.join(",") : null });
        showOdds((await askJson(path, { method: "POST", body: places })).scores);
        byId("odds-problem").textContent = "";
      } catch (error) {
        byId("odds-problem").textContent = error.message;
      }
    } while (again);
    busy = false;
    byId("odds").removeAttribute("aria-busy");
  }

  byId("clear").onclick = () => {
    remember();
    places = new Uint8Array(width * height);
    changed();
  };
  byId("undo").onclick = () => restore(past, future);
  byId("redo").onclick = () => restore(future, past);
  byId("pick").onclick = () => setPicking(!picking);
  byId("brush-size").oninput = () => stage.mark();
  setPicking(false);
  showPaints();
  byId("odds").replaceChildren();
  restoreStored();
  return {
    begin: async (point) => {
      if (picking) {
        pick(point);
        return;
      }
      last = null;
      remember();
      await pictureOf(paint);
      stroke(point);
    },
    draw: (point) => {
      if (last) stroke(point);
    },
    end: () => {
      last = null;
    },
    active: () => document.body.dataset.level === "whatif",
    reach,
    fill,
    tell,
    redraw: draw,
    undo: () => restore(past, future),
    redo: () => restore(future, past),
    choose: (name) => {
      const k = paints().findIndex((one) => one.name === name);
      if (k > 0) choose(k);
    },
  };
}

function showOdds(scores) {
  const most = Math.max(1e-9, ...scores.flatMap((one) => [Math.abs(one.before), Math.abs(one.after)])),
    full = most <= 1 ? 1 : most;
  const share = (value) => `${(100 * Math.max(value, 0)) / full}%`;
  keep(
    byId("odds"),
    scores.map((one) => ({ key: `${one.target}`, ...one })),
    ({ label }) =>
      el(
        "div",
        {},
        el("span", { class: "name", title: label }, label),
        el("div", { class: "track" }, el("i", { class: "value" }), el("i", { class: "before" })),
        el("span", { class: "number" }),
      ),
    (line, one) => {
      line.querySelector(".value").style.width = share(one.after);
      line.querySelector(".before").style.left = share(one.before);
      line.querySelector(".number").textContent = `${one.before.toFixed(3)} → ${one.after.toFixed(3)}`;
    },
  );
}

/** The pixels of a picture, as RGBA bytes. */
async function pixelsOf(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = el("canvas");
  Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height).data;
}
