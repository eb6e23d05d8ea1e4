// New: what to explain. Files, folders, paste and drop, many at once, and all that `mcrise explain` takes.

import { askJson, query } from "./api.js";
import { byId, el, named, swatch } from "./element.js";
import { toast } from "./toast.js";

const CHUNK = 64; // masks come in whole chunks
const BUSY = 429, FULL = 507, WAIT = 1500;
const MOST_SHOWN = 24; // pictures that are chosen
let server = null, actions = null, pictures = []; // those that are chosen: files and signs
let n_unsent = 0;

/** `begun` is called when several pictures are sent, `made` with each job and whether it is the only one, `remove` with jobs to delete. */
export function makeNew(given, { begun, made, remove }) {
  server = given;
  actions = { begun, made, remove };
  server.palette.forEach((color, i) => byId("palette").append(colorChip(color, i < 5)));
  byId("model").append(...server.models.map((model) => el("option", {}, model.name)));
  byId("model-line").hidden = server.models.length < 2;
  byId("signs").append(...server.signs.map(signChoice));
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
  showDefaults();
  tellMasks();
}

export function openNew() {
  if (!byId("new-dialog").open) byId("new-dialog").showModal();
  problem("");
  if (!n_unsent) tellWaiting(""); // what was refused is seen here
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
  const others = chosen.filter((file) => !isPicture(file)).map(nameOf);
  pictures.push(...chosen.filter(isPicture).map((file) => ({ file, name: nameOf(file), address: URL.createObjectURL(file) })));
  problem(!others.length ? "" : others.length === chosen.length ? "None of these is a picture." : `Left out, no picture: ${someOf(others)}.`);
  preview();
}

const someOf = (words) => words.slice(0, 3).join(", ") + (words.length > 3 ? ` and ${words.length - 3} more` : "");

function problem(words) {
  byId("problem").textContent = words;
}

function preview() {
  byId("previews").replaceChildren(...pictures.slice(0, MOST_SHOWN).map((one) => el("li", {},
    el("img", { src: one.address, alt: "", title: one.name }),
    named(one.name),
    one.problem ? el("span", { class: "problem" }, one.problem) : null,
    el("button", { type: "button", "aria-label": `Leave out ${one.name}`, onclick: () => leaveOut(one) }, "×"))),
  ...(pictures.length > MOST_SHOWN ? [el("li", { class: "rest" }, `and ${pictures.length - MOST_SHOWN} more`)] : []));
  byId("explain").textContent = pictures.length > 1 ? `Explain ${pictures.length} pictures` : "Explain";
  for (const one of byId("signs").children) one.setAttribute("aria-pressed", Boolean(signChosen(one.dataset.sign)));
}

function leaveOut(one) {
  URL.revokeObjectURL(one.address);
  pictures = pictures.filter((other) => other !== one);
  preview();
}

function signChoice(name) {
  const words = name.replaceAll("-", " ");
  return el("button", { type: "button", class: "sign", "aria-pressed": "false", "aria-label": words, title: words, "data-sign": name, onclick: () => toggleSign(name) },
    el("img", { src: `/api/signs/${name}`, alt: "", loading: "lazy", width: 56, height: 56 }));
}

const signChosen = (name) => pictures.find((one) => one.sign === name);

/** A sign stands beside the files that are chosen; pressed again, it goes. */
function toggleSign(name) {
  if (signChosen(name)) { leaveOut(signChosen(name)); return; }
  pictures.push({ sign: name, name, address: `/api/signs/${name}` });
  preview();
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

function showDefaults() {
  const { defaults } = server;
  byId("rows").value = defaults.grid[0];
  byId("columns").value = defaults.grid[1];
  byId("seed").value = defaults.seed;
  byId("tolerance").value = defaults.tolerance;
  byId("max-masks").value = defaults.max_masks;
  byId("batch").value = defaults.batch_size;
}

function tellMasks() {
  const asked = byId("masks").value.trim(), whole = Math.ceil(asked / CHUNK) * CHUNK;
  const odd = asked !== "" && /^\d+$/.test(asked) && whole !== Number(asked);
  byId("masks-note").textContent = asked === "" ? "As many as needed." : odd ? `${whole.toLocaleString("en")} in whole chunks of ${CHUNK}.` : "";
}

function asked() {
  addOwn(); // what was typed is meant, with Add or without
  const colors = [...document.querySelectorAll("#palette input:checked")].map((box) => box.value);
  if (!colors.length) throw new Error("No color is chosen: choose at least one to paint with.");
  const set = (id) => byId(id).value.trim() || null;
  return {
    colors: colors.join(","), n_masks: set("masks") ?? "auto", model: byId("model").value, target: set("about-class"), mask_prob: set("mask-prob"),
    rows: set("rows"), columns: set("columns"), seed: set("seed"), tolerance: set("tolerance"), max_masks: set("max-masks"), batch_size: set("batch"),
  };
}

/** Send all that is chosen. What is refused comes back to the list; while too many wait already, the rest waits in the background. */
async function send() {
  problem("");
  let order;
  try { order = asked(); } catch (error) { problem(error.message); return; }
  if (!pictures.length) { problem("Choose a picture first."); return; }
  const batch = [...pictures], alone = batch.length === 1, refused = [];
  let waits = false;
  const wait = () => {
    tellWaiting(n_unsent === 1 ? "1 picture waits in this tab: keep it open." : `${n_unsent} pictures wait in this tab: keep it open.`);
    if (waits) return;
    waits = true;
    if (alone) actions.begun();
    leaveDialog(batch);
    byId("new-dialog").close();
  };
  const stay = (event) => event.preventDefault(); // what waits in this tab would be lost
  window.addEventListener("beforeunload", stay);
  byId("explain").disabled = true;
  n_unsent += batch.length;
  if (!alone) actions.begun();
  for (const one of batch) {
    try {
      const job = await post(order, one, wait);
      URL.revokeObjectURL(one.address);
      actions.made(job, alone && !waits);
    } catch (error) {
      refused.push(Object.assign(one, { problem: error.message, full: error.status === FULL }));
    }
    n_unsent -= 1;
  }
  window.removeEventListener("beforeunload", stay);
  if (!waits) leaveDialog(batch);
  pictures.unshift(...refused);
  preview();
  const words = refused.length ? refusal(refused, batch.length) : "";
  if (refused.some((one) => one.full)) offerDeletion();
  if (!n_unsent) tellWaiting("");
  if (words && !waits && byId("new-dialog").open) {
    problem(words);
    byId("explain").focus(); // disabled, it lost it
  } else if (words) tellWaiting(`${words} New has what is left.`);
  else {
    if (!waits) byId("new-dialog").close();
    if (!alone) toast("All pictures are sent.", 4);
  }
}

/** Make room in the dialog for others. */
function leaveDialog(batch) {
  pictures = pictures.filter((one) => !batch.includes(one));
  preview();
  byId("explain").disabled = false;
}

/** The server is full: offer to delete the oldest jobs. */
async function offerDeletion() {
  const oldest = (await askJson("info").catch(() => null))?.storage.to_delete ?? [];
  if (!oldest.length) return;
  const megabytes = oldest.reduce((sum, one) => sum + one.bytes, 0) / 1e6;
  const words = `Delete the ${oldest.length === 1 ? "oldest job" : `${oldest.length} oldest jobs`} (${megabytes.toPrecision(2)} MB)`;
  byId("problem").append(" ", el("button", { type: "button", id: "delete-oldest", title: oldest.map((one) => one.name).join(", "), onclick: () => {
    problem("");
    byId("new-dialog").close(); // Undo is outside
    actions.remove(oldest.map((one) => one.id));
  } }, words));
}

function refusal(refused, n) {
  const [{ name, problem: why }] = refused, first = `${name}: ${why}`;
  return n === 1 ? first : `${refused.length} of ${n} could not be taken: ${first}`;
}

/** Above the list of jobs, where it hides nothing. */
function tellWaiting(words) {
  if (byId("sending").textContent !== words) byId("sending").textContent = words; // spoken when it changes
}

/** Send a picture; while too many wait already, wait too. */
async function post(order, { file, name, sign }, wait) {
  for (;;) {
    try {
      return await askJson(query("jobs", sign ? { ...order, sign } : { ...order, name }), { method: "POST", body: file });
    } catch (error) {
      if (error.status !== BUSY) throw error;
    }
    wait();
    await new Promise((done) => { setTimeout(done, WAIT); });
  }
}
