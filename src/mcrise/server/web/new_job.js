// @ts-check
// New: what to explain. Files, folders, paste and drop, many at once, and all that `mcrise explain` takes.

import { askJson, query } from "./api.js";
import { byId, el, named, swatch } from "./element.js";
import { state } from "./store.js";
import { toast } from "./toast.js";

const CHUNK = 64; // masks come in whole chunks
const BUSY = 429,
  FULL = 507,
  WAIT = 1500;
const MOST_SHOWN = 24; // pictures that are chosen
const AT_ONCE = 4; // pictures on their way
const FIELDS = {
  n_masks: "masks",
  tolerance: "tolerance",
  max_masks: "max-masks",
  target: "about-class",
  mask_prob: "mask-prob",
  rows: "rows",
  columns: "columns",
  seed: "seed",
  batch_size: "batch",
  colors: "own",
  name: null,
  model: "model",
};
let actions = null,
  pictures = []; // those that are chosen: files and signs
let n_unsent = 0;

/**
 * `begun` is called when several pictures are sent, `made` with each job and whether it is the only one, and
 * `remove` with jobs to delete.
 */
export function makeNew({ begun, made, remove }) {
  const { server } = state;
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
  byId("own").onkeydown = (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      addOwn();
    }
  };
  byId("masks").oninput = byId("masks").onchange = tellMasks;
  byId("close-new").onclick = () => byId("new-dialog").close();
  byId("ask").onsubmit = (event) => {
    event.preventDefault();
    send();
  };
  document.addEventListener("paste", (event) => {
    const pasted = [...event.clipboardData.files];
    if (pasted.length) {
      openNew();
      take(pasted);
    }
  });
  const drag = (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", event.type === "dragover");
    if (event.type === "drop")
      dropped(event.dataTransfer).then((found) => {
        openNew();
        take(found);
      });
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
      const file = await new Promise((resolve, reject) => {
        entry.file(resolve, reject);
      });
      file.folder = folder;
      found.push(file);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((resolve, reject) => {
        reader.readEntries(resolve, reject);
      });
      if (!some.length) return;
      for (const one of some) await walk(one, `${folder}${entry.name}/`);
    }
  };
  for (const entry of entries) await walk(entry, "");
  return found;
}

const nameOf = (file) =>
  (file.webkitRelativePath || `${file.folder ?? ""}${file.name}`).split("/").slice(-2).join("/").slice(-200);
const isPicture = (file) => file.type.startsWith("image/") || /\.(p[pgbn]m|png|jpe?g|webp|gif|bmp)$/i.test(file.name);

function take(chosen) {
  const others = chosen.filter((file) => !isPicture(file)).map(nameOf);
  pictures.push(
    ...chosen.filter(isPicture).map((file) => ({ file, name: nameOf(file), address: URL.createObjectURL(file) })),
  );
  problem(
    !others.length
      ? ""
      : others.length === chosen.length
        ? "None of these is a picture."
        : `Left out, no picture: ${someOf(others)}.`,
  );
  preview();
}

const someOf = (words) => words.slice(0, 3).join(", ") + (words.length > 3 ? ` and ${words.length - 3} more` : "");

/** Say what is wrong: at its field where it is one field's, else beside the button. */
function problem(words, field = "") {
  for (const one of document.querySelectorAll("#ask .field-problem")) one.remove();
  for (const one of document.querySelectorAll("#ask [aria-invalid]")) one.removeAttribute("aria-invalid");
  const input = field && byId(FIELDS[field]);
  byId("problem").textContent = input ? "" : words;
  if (!input) return;
  input.closest("details")?.setAttribute("open", "");
  input.setAttribute("aria-invalid", "true");
  input.after(el("span", { class: "problem field-problem", role: "alert" }, words));
  input.focus();
  input.scrollIntoView({ block: "center" });
}

/** The field that a refusal of the server is about, if it is one. */
function fieldOf(error) {
  if (error.fields?.length === 1) return error.fields[0].field;
  const named = Object.keys(FIELDS).filter((name) => FIELDS[name] && error.message.includes(name));
  return named.length === 1
    ? named[0]
    : /color|painted/.test(error.message)
      ? "colors"
      : /class/.test(error.message)
        ? "target"
        : "";
}

function preview() {
  byId("previews").replaceChildren(
    ...pictures
      .slice(0, MOST_SHOWN)
      .map((one) =>
        el(
          "li",
          {},
          el("img", { src: one.address, alt: "", title: one.name }),
          named(one.name),
          one.problem ? el("span", { class: "problem" }, one.problem) : null,
          el("button", { type: "button", "aria-label": `Leave out ${one.name}`, onclick: () => leaveOut(one) }, "×"),
        ),
      ),
    ...(pictures.length > MOST_SHOWN ? [el("li", { class: "rest" }, `and ${pictures.length - MOST_SHOWN} more`)] : []),
  );
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
  return el(
    "button",
    {
      type: "button",
      class: "sign",
      "aria-pressed": "false",
      "aria-label": words,
      title: words,
      "data-sign": name,
      onclick: () => toggleSign(name),
    },
    el("img", { src: `/api/signs/${name}`, alt: "", loading: "lazy", width: 56, height: 56 }),
  );
}

const signChosen = (name) => pictures.find((one) => one.sign === name);

/** A sign stands beside the files that are chosen; pressed again, it goes. */
function toggleSign(name) {
  if (signChosen(name)) {
    leaveOut(signChosen(name));
    return;
  }
  pictures.push({ sign: name, name, address: `/api/signs/${name}` });
  preview();
}

// ---- colors

function colorChip(color, checked, own = false) {
  const box = el("input", { type: "checkbox", value: color.name, checked });
  const chip = el("label", { class: "chip" }, box, el("span", {}, swatch(color.swatch), color.name));
  if (!own) return chip;
  return el(
    "span",
    { class: "own" },
    chip,
    el(
      "button",
      {
        type: "button",
        "aria-label": `Remove ${color.name}`,
        onclick: (event) => {
          event.currentTarget.parentElement.remove();
          byId("own").focus();
        },
      },
      "×",
    ),
  );
}

/** @returns {HTMLInputElement[]} */
const palette = () => [...byId("palette").querySelectorAll("input")];

function addOwn() {
  for (const word of byId("own")
    .value.split(",")
    .map((one) => one.trim())
    .filter(Boolean)) {
    const known = palette().find((box) => box.value === word);
    if (known) known.checked = true;
    else byId("palette").append(colorChip({ name: word, swatch: CSS.supports("color", word) ? word : "" }, true, true));
  }
  byId("own").value = "";
}

// ---- sending

function showDefaults() {
  const { defaults } = state.server;
  byId("rows").value = defaults.grid[0];
  byId("columns").value = defaults.grid[1];
  byId("seed").value = defaults.seed;
  byId("tolerance").value = defaults.tolerance;
  byId("max-masks").value = defaults.max_masks;
  byId("batch").value = defaults.batch_size;
}

function tellMasks() {
  const asked = byId("masks").value.trim(),
    whole = Math.ceil(asked / CHUNK) * CHUNK;
  const odd = asked !== "" && /^\d+$/.test(asked) && whole !== Number(asked);
  byId("masks-note").textContent =
    asked === "" ? "As many as needed." : odd ? `${whole.toLocaleString("en")} in whole chunks of ${CHUNK}.` : "";
}

function asked() {
  addOwn(); // what was typed is meant, with Add or without
  const colors = palette()
    .filter((box) => box.checked)
    .map((box) => box.value);
  if (!colors.length) throw new Error("No color is chosen: choose at least one to paint with.");
  const set = (id) => byId(id).value.trim() || null;
  return {
    colors: colors.join(","),
    n_masks: set("masks") ?? "auto",
    model: byId("model").value,
    target: set("about-class"),
    mask_prob: set("mask-prob"),
    rows: set("rows"),
    columns: set("columns"),
    seed: set("seed"),
    tolerance: set("tolerance"),
    max_masks: set("max-masks"),
    batch_size: set("batch"),
  };
}

/** Send all that is chosen, some at a time. What is refused comes back to the list. */
async function send() {
  problem("");
  let order;
  try {
    order = asked();
  } catch (error) {
    problem(error.message, "colors");
    return;
  }
  if (!pictures.length) {
    problem("Choose a picture first.");
    return;
  }
  const batch = [...pictures],
    alone = batch.length === 1,
    refused = [],
    began = performance.now();
  let waits = false,
    next = 0,
    n_sent = 0;
  const goOn = () => {
    // the dialog is needed no more
    if (waits) return;
    waits = true;
    if (alone) actions.begun();
    leaveDialog(batch);
    byId("new-dialog").close();
  };
  const tellProgress = (full) => {
    const left = ((performance.now() - began) / 1000 / Math.max(n_sent, 1)) * (batch.length - n_sent);
    const words = full ? "the server is busy" : n_sent > AT_ONCE ? `about ${Math.ceil(left)} s left` : "";
    tellWaiting(
      alone && !full
        ? ""
        : [`Sent ${n_sent} of ${batch.length}`, words, "keep this tab open"].filter(Boolean).join(" · "),
    );
  };
  const stay = (event) => event.preventDefault(); // what waits in this tab would be lost
  window.addEventListener("beforeunload", stay);
  byId("explain").disabled = true;
  n_unsent += batch.length;
  if (!alone) actions.begun();
  async function sendSome() {
    while (next < batch.length) {
      const one = batch[next++];
      try {
        const job = await post(order, one, () => {
          goOn();
          tellProgress(true);
        });
        URL.revokeObjectURL(one.address);
        actions.made(job, alone && !waits);
      } catch (error) {
        refused.push(
          Object.assign(one, { problem: error.message, field: fieldOf(error), full: error.status === FULL }),
        );
      }
      n_unsent -= 1;
      n_sent += 1;
      if (batch.length > AT_ONCE) goOn();
      tellProgress(false);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sendSome));
  window.removeEventListener("beforeunload", stay);
  if (!waits) leaveDialog(batch);
  pictures.unshift(...refused);
  preview();
  const words = refused.length ? refusal(refused, batch.length) : "";
  if (!n_unsent) tellWaiting("");
  if (words && !waits && byId("new-dialog").open) {
    byId("explain").focus(); // disabled, it lost it
    if (alone && refused[0].field) problem(refused[0].problem, refused[0].field);
    else problem(words);
    if (refused.some((one) => one.full)) offerDeletion();
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
  const which = oldest.length === 1 ? "oldest job" : `${oldest.length} oldest jobs`;
  const words = `Delete the ${which} (${megabytes.toPrecision(2)} MB)`;
  byId("problem").append(
    " ",
    el(
      "button",
      {
        type: "button",
        id: "delete-oldest",
        title: oldest.map((one) => one.name).join(", "),
        onclick: () => {
          problem("");
          byId("new-dialog").close(); // Undo is outside
          actions.remove(oldest.map((one) => one.id));
        },
      },
      words,
    ),
  );
}

function refusal(refused, n) {
  const [{ name, problem: why }] = refused,
    first = `${name}: ${why}`;
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
      return await askJson(query("jobs", sign ? { ...order, sign } : { ...order, name }), {
        method: "POST",
        body: file,
      });
    } catch (error) {
      if (error.status !== BUSY) throw error;
    }
    wait();
    await new Promise((done) => {
      setTimeout(done, WAIT);
    });
  }
}
