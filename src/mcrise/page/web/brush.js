// The what-if brush: paint on the picture and see the scores move.

import { askJson, byId, query } from "./api.js";
import { element, makeView, mark, track } from "./maps.js";

/** Start over with a job's picture; `target` gives the class that is looked at. */
export async function makeBrush(id, info, pixels, target) {
  const [height, width] = info.size;
  const places = new Uint8Array(width * height); // 0 keeps, k paints fill k
  const view = makeView(byId("brush"), "The picture to paint on");
  view.picture.width = width;
  view.picture.height = height;
  const context = view.picture.getContext("2d");
  let fill = 2 <= info.fills.length ? 2 : 1, busy = false, again = false;

  const choices = [{ name: "original", swatch: "" }, ...info.fills];
  byId("paints").replaceChildren(...choices.map((one, k) => paintChoice(one, k, k === fill, () => { fill = k; })));
  const pictures = [pixels, ...await Promise.all(info.fills.map((_, k) => pixelsOf(`/api/jobs/${id}/fills/${k}`)))];

  function draw() {
    const image = new ImageData(width, height);
    for (let i = 0; i < places.length; i++) {
      const from = pictures[places[i]];
      for (let c = 0; c < 4; c++) image.data[4 * i + c] = from[4 * i + c];
    }
    context.putImageData(image, 0, 0);
  }

  function dab(point) {
    const reach = byId("size").value * width;
    for (let row = Math.max(0, Math.floor(point.row - reach)); row <= Math.min(height - 1, point.row + reach); row++) {
      for (let column = Math.max(0, Math.floor(point.column - reach)); column <= Math.min(width - 1, point.column + reach); column++) {
        if (Math.hypot(row - point.row, column - point.column) <= reach) places[row * width + column] = fill;
      }
    }
    draw();
    tell();
  }

  async function tell() {
    if (busy) { again = true; return; }
    busy = true;
    do {
      again = false;
      try {
        const path = query(`jobs/${id}/whatif`, { target: target() });
        showOdds((await askJson(path, { method: "POST", body: places })).scores);
      } catch (error) {
        byId("odds").textContent = error.message;
      }
    } while (again);
    busy = false;
  }

  track(view.picture, (point, event) => {
    mark(view, null, point);
    if (event.buttons === 1 || event.type === "pointerdown" || event.key === " ") dab(point);
  });
  byId("clear").onclick = () => { places.fill(0); draw(); tell(); };
  draw();
  tell();
  return tell;
}

function paintChoice(one, k, checked, chosen) {
  const label = element("label", "chip"), radio = element("input"), face = element("span");
  Object.assign(radio, { type: "radio", name: "paint", value: k, checked });
  radio.addEventListener("change", chosen);
  const swatch = element("i", "swatch");
  if (one.swatch) swatch.style.background = one.swatch;
  face.append(swatch, one.name);
  label.append(radio, face);
  return label;
}

function showOdds(scores) {
  const most = Math.max(1e-9, ...scores.flatMap((one) => [Math.abs(one.before), Math.abs(one.after)]));
  const full = most <= 1 ? 1 : most;
  byId("odds").replaceChildren(...scores.map((one) => {
    const line = element("div"), bar = element("div", "track");
    const value = element("i", "value"), before = element("i", "before");
    value.style.left = 0;
    value.style.width = `${100 * Math.max(one.after, 0) / full}%`;
    before.style.left = `${100 * Math.max(one.before, 0) / full}%`;
    bar.append(value, before);
    const name = element("span", "name", one.label);
    name.title = one.label;
    line.append(name, bar, element("span", "number", `${one.before.toFixed(3)} → ${one.after.toFixed(3)}`));
    return line;
  }));
}

/** The pixels of a picture, as RGBA bytes. */
export async function pixelsOf(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = element("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height).data;
}
