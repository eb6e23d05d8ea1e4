// New: what to explain. Files, folders, paste and drop, many at once, and all that `mcrise explain` takes.

import { askJson, query } from "./api.js";
import { byId, el, swatch } from "./element.js";

const CHUNK = 64; // masks come in whole chunks
const BUSY = 429, WAIT = 1500;
let about = null, submitted = null, files = [], sign = null;

export function makeNew(given, done) {
  about = given;
  submitted = done;
  about.palette.forEach((color, i) => byId("palette").append(colorChip(color, i < 5)));
  byId("model").append(...about.models.map((model) => el("option", {}, model.name)));
  byId("model-line").hidden = about.models.length < 2;
  byId("signs").append(...about.signs.map(signChoice));
  for (const id of ["file", "folder"]) {
    byId(id).onchange = (event) => {
      take([...event.target.files]);
      event.target.value = ""; // so that the same file can be chosen again
    };
  }
  byId("choose-folder").onclick = () => byId("folder").click();
  byId("add").onclick = addOwn;
  byId("own").onkeydown = (event) => { if (event.key === "Enter") { event.preventDefault(); addOwn(); } };
  byId("masks").oninput = byId("masks").onchange = tellMasks;
  byId("close-new").onclick = () => byId("new-dialog").close();
  byId("ask").onsubmit = (event) => { event.preventDefault(); send(); };
  document.addEventListener("paste", (event) => {
    const pasted = [...event.clipboardData.files];
    if (pasted.length) { openNew(); take(pasted); }
  });
  const drag = (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", event.type === "dragover");
    if (event.type === "drop") dropped(event.dataTransfer).then((found) => { openNew(); take(found); });
  };
  for (const kind of ["dragover", "dragleave", "drop"]) document.addEventListener(kind, drag);
  usual();
  tellMasks();
}

export function openNew() {
  if (!byId("new-dialog").open) byId("new-dialog").showModal();
  byId("problem").textContent = "";
}

/** Files of a drop, those in folders too, with the folder in their name. */
async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files];
  const found = [];
  const walk = async (entry, folder) => {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => { entry.file(resolve, reject); });
      file.folder = folder;
      found.push(file);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
      if (!some.length) return;
      for (const one of some) await walk(one, `${folder}${entry.name}/`);
    }
  };
  for (const entry of entries) await walk(entry, "");
  return found;
}

const nameOf = (file) => (file.webkitRelativePath || `${file.folder ?? ""}${file.name}`).split("/").slice(-2).join("/").slice(-200);
const isPicture = (file) => file.type.startsWith("image/") || /\.(p[pgbn]m|png|jpe?g|webp|gif|bmp)$/i.test(file.name);

function take(chosen) {
  const pictures = chosen.filter(isPicture);
  files.push(...pictures.map((file) => ({ file, name: nameOf(file), address: URL.createObjectURL(file) })));
  byId("problem").textContent = chosen.length && !pictures.length ? "None of these is a picture." : "";
  if (pictures.length) chooseSign(null);
  preview();
}

function preview() {
  byId("previews").replaceChildren(...files.slice(0, 24).map((one) => el("li", {},
    el("img", { src: one.address, alt: "", title: one.name }),
    el("span", { class: "name", title: one.name }, one.name),
    el("button", { type: "button", "aria-label": `Leave out ${one.name}`, onclick: () => { forget([one]); preview(); } }, "×"))),
  ...(files.length > 24 ? [el("li", { class: "rest" }, `and ${files.length - 24} more`)] : []));
  byId("explain").textContent = files.length > 1 ? `Explain ${files.length} pictures` : "Explain";
}

function forget(some) {
  some.forEach((one) => URL.revokeObjectURL(one.address));
  files = files.filter((one) => !some.includes(one));
}

function signChoice(name) {
  const words = name.replaceAll("-", " ");
  return el("button", { type: "button", class: "sign", "aria-pressed": "false", "aria-label": words, title: words, "data-sign": name, onclick: () => chooseSign(name) },
    el("img", { src: `/api/signs/${name}`, alt: "", loading: "lazy", width: 56, height: 56 }));
}

function chooseSign(name) {
  sign = name;
  if (name) { forget([...files]); preview(); }
  for (const one of byId("signs").children) one.setAttribute("aria-pressed", one.dataset.sign === name);
}

// ---- colors

function colorChip(color, checked, own = false) {
  const box = el("input", { type: "checkbox", value: color.name, checked });
  const chip = el("label", { class: "chip" }, box, el("span", {}, swatch(color.swatch), color.name));
  if (!own) return chip;
  return el("span", { class: "own" }, chip, el("button", { type: "button", "aria-label": `Remove ${color.name}`, onclick: (event) => { event.currentTarget.parentElement.remove(); byId("own").focus(); } }, "×"));
}

function addOwn() {
  for (const word of byId("own").value.split(",").map((one) => one.trim()).filter(Boolean)) {
    const known = [...document.querySelectorAll("#palette input")].find((box) => box.value === word);
    if (known) known.checked = true;
    else byId("palette").append(colorChip({ name: word, swatch: CSS.supports("color", word) ? word : "" }, true, true));
  }
  byId("own").value = "";
}

// ---- sending

function usual() {
  const { usual: brief } = about;
  byId("rows").value = brief.grid[0];
  byId("columns").value = brief.grid[1];
  byId("seed").value = brief.seed;
  byId("tolerance").value = brief.tolerance;
  byId("cap").value = brief.cap;
  byId("batch").value = brief.batch_size;
}

function tellMasks() {
  const asked = byId("masks").value.trim(), whole = Math.ceil(asked / CHUNK) * CHUNK;
  const odd = asked !== "" && /^\d+$/.test(asked) && whole !== Number(asked);
  byId("masks-note").textContent = asked === "" ? "As many as needed." : odd ? `${whole.toLocaleString("en")} in whole chunks of ${CHUNK}.` : "";
}

function asked() {
  const colors = [...document.querySelectorAll("#palette input:checked")].map((box) => box.value);
  if (!colors.length) throw new Error("No color is chosen: choose at least one to paint with.");
  const set = (id) => byId(id).value.trim() || null;
  return {
    colors: colors.join(","), n_masks: set("masks") ?? "auto", model: byId("model").value, target: set("about-class"), mask_prob: set("mask-prob"),
    rows: set("rows"), columns: set("columns"), seed: set("seed"), tolerance: set("tolerance"), cap: set("cap"), batch_size: set("batch"),
  };
}

async function send() {
  byId("problem").textContent = "";
  const problem = (error) => { byId("problem").textContent = error.message; };
  let order;
  try { order = asked(); } catch (error) { problem(error); return; }
  if (!files.length && !sign) { problem(new Error("Choose a picture first.")); return; }
  byId("explain").disabled = true;
  const stay = (event) => event.preventDefault(); // what waits in this tab would be lost
  window.addEventListener("beforeunload", stay);
  const sent = [];
  try {
    if (sign) submitted([await askJson(query("jobs", { ...order, sign }), { method: "POST" })], true);
    else {
      const waiting = [...files];
      for (const one of waiting) {
        const job = await post(order, one, waiting.length - sent.length);
        sent.push(one);
        submitted([job], sent.length === 1 && waiting.length === 1, waiting.length - sent.length);
      }
    }
    byId("new-dialog").close();
  } catch (error) {
    openNew();
    problem(error);
  }
  window.removeEventListener("beforeunload", stay);
  forget(sent);
  preview();
  byId("explain").disabled = false;
}

/** Send a picture; while too many wait already, wait too. */
async function post(order, { file, name }, left) {
  for (;;) {
    try {
      return await askJson(query("jobs", { ...order, name }), { method: "POST", body: file });
    } catch (error) {
      if (error.status !== BUSY) throw Object.assign(error, { message: `${name}: ${error.message}` });
    }
    if (byId("new-dialog").open) byId("new-dialog").close();
    submitted([], false, left);
    await new Promise((done) => { setTimeout(done, WAIT); });
  }
}
