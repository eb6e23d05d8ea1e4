// What to explain: picture, colors, masks.

import { askJson, byId, query } from "./api.js";
import { element } from "./maps.js";

let file = null;

export function makeForm(about, submitted) {
  about.signs.forEach((name, i) => byId("signs").append(signChoice(name, i === 0)));
  about.palette.forEach((color, i) => byId("palette").append(chip(color, i < 5)));
  about.models.forEach((model) => byId("model").append(element("option", "", model.name)));
  byId("model-line").hidden = about.models.length < 2;
  byId("file").addEventListener("change", (event) => choose(event.target.files[0]));
  byId("signs").addEventListener("change", () => choose(null));
  if (byId("file").files.length) choose(byId("file").files[0]); // chosen before this had loaded
  const drop = byId("drop");
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) choose(event.dataTransfer.files[0]);
    });
  }
  byId("add").addEventListener("click", addOwn);
  byId("own").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    addOwn();
  });
  byId("ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    byId("problem").textContent = "";
    byId("explain").disabled = true;
    try {
      submitted(await submit());
    } catch (error) {
      byId("problem").textContent = error.message;
    }
    byId("explain").disabled = false;
  });
}

function submit() {
  const colors = [...document.querySelectorAll("#palette input:checked")].map((box) => box.value);
  const sign = document.querySelector("#signs input:checked")?.value;
  const asked = { colors: colors.join(","), n_masks: byId("masks").value, model: byId("model").value };
  if (!file) return askJson(query("jobs", { ...asked, sign }), { method: "POST" });
  const name = file.name.slice(0, 200);
  return askJson(query("jobs", { ...asked, name }), { method: "POST", body: file });
}

function choose(chosen) {
  file = chosen || null;
  byId("dropped").textContent = file ? file.name : "Drop a picture here, or choose a file";
  byId("drop").classList.toggle("chosen", Boolean(file));
  if (file) document.querySelectorAll("#signs input").forEach((radio) => { radio.checked = false; });
}

function signChoice(name, checked) {
  const label = element("label", "sign");
  const radio = element("input");
  Object.assign(radio, { type: "radio", name: "sign", value: name, checked });
  const image = element("img");
  Object.assign(image, { src: `/api/signs/${name}`, alt: name.replaceAll("-", " "), title: image.alt });
  label.append(radio, image);
  return label;
}

function chip(color, checked) {
  const label = element("label", "chip"), box = element("input"), face = element("span");
  Object.assign(box, { type: "checkbox", value: color.name, checked });
  const swatch = element("i", "swatch");
  swatch.style.background = color.swatch;
  face.append(swatch, color.name);
  label.append(box, face);
  return label;
}

function addOwn() {
  const word = byId("own").value.trim();
  if (!word) return;
  const known = [...document.querySelectorAll("#palette input")].find((box) => box.value === word);
  if (known) known.checked = true;
  else byId("palette").append(chip({ name: word, swatch: CSS.supports("color", word) ? word : "#888" }, true));
  byId("own").value = "";
}
