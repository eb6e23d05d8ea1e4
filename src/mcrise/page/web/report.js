// The report: each article has a picture, packed maps and findings; make them readable by pointing.

import { drawBars, drawMap, drawScale, lifted, makeView, mark, track, unpack } from "./maps.js";

for (const article of document.querySelectorAll("article")) await enliven(article);
document.body.dataset.ready = "yes";

async function enliven(article) {
  const find = (what) => article.querySelector(what);
  const maps = await inflate(find(".packed").textContent);
  const swatches = JSON.parse(article.dataset.swatches);
  const pixels = await pixelsOf(find(".view img"));
  const gray = lifted(pixels);
  const view = makeView(find(".view"), "The selected map over the picture; arrow keys move the pointer");
  const panels = [...article.querySelectorAll(".panel")];
  let point = { row: maps.shape[1] >> 1, column: maps.shape[2] >> 1 }, runs = null;

  const select = (k) => {
    drawMap(view.picture, maps, k, maps, gray, pixels, 1);
    find("figcaption").textContent = `${maps.label} · ${maps.names[k]}`;
    panels.forEach((panel, i) => panel.setAttribute("aria-pressed", i === k));
    show(point);
  };
  const show = (place) => {
    point = place;
    drawBars(find(".bars"), maps, maps, swatches, place.row, place.column);
    mark(view, runs, place);
  };
  panels.forEach((panel, k) => { panel.onclick = () => select(k); });
  track(view.picture, show);
  for (const item of article.querySelectorAll(".findings li")) {
    const outline = (region) => () => { runs = region; mark(view, runs, point); };
    item.onmouseenter = item.onfocus = outline(JSON.parse(item.dataset.runs));
    item.onmouseleave = item.onblur = outline(null);
  }
  drawScale(find(".scale"), maps, maps);
  select(0);
}

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return unpack(await new Response(stream).arrayBuffer());
}

async function pixelsOf(image) {
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height).data;
}
