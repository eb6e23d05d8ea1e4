// @ts-check
// The report: each article has a picture, packed maps and findings; make them readable by pointing.

import { drawBars, drawScale, unpack } from "./maps.js";
import { around } from "./outline.js";
import { makeStage } from "./stage.js";

for (const article of document.querySelectorAll("article")) await enliven(article);
document.body.dataset.ready = "yes";

async function enliven(article) {
  const find = (what) => article.querySelector(what);
  const maps = await inflate(find(".packed").textContent);
  const swatches = JSON.parse(article.dataset.swatches),
    colors = maps.names.map((name) => swatches[name]);
  const picture = find(".stage img").src,
    panels = [...article.querySelectorAll(".panel")];
  const stage = makeStage(find(".stage"), {
    moved: ({ down, across }) => drawBars(find(".bars"), maps, maps, colors, down, across),
  });

  const select = (k) => {
    const common = { picture, size: maps.size, maps, k, scale: maps };
    stage.show([
      {
        ...common,
        key: "picture",
        kind: "picture",
        alt: "The picture; arrow keys move the pointer",
        caption: ["The image as the model gets it"],
      },
      {
        ...common,
        key: "map",
        kind: "map",
        alt: `The map of ${maps.names[k]}; arrow keys move the pointer`,
        caption: [`${maps.label} · ${maps.names[k]}`],
      },
    ]);
    for (const panel of panels) panel.setAttribute("aria-pressed", Number(panel.dataset.k) === k);
  };
  for (const panel of panels) panel.onclick = () => select(Number(panel.dataset.k));
  for (const item of article.querySelectorAll(".findings li")) {
    const path = around(JSON.parse(item.dataset.runs), maps.size);
    item.onmouseenter = item.onfocus = () => stage.outline(path);
    item.onmouseleave = item.onblur = () => stage.outline("");
  }
  drawScale(find(".scale"), maps, maps);
  drawBars(find(".bars"), maps, maps, colors, 0.5, 0.5);
  select(Number(panels[0].dataset.k));
}

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return unpack(await new Response(stream).arrayBuffer());
}
