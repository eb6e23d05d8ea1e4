// @ts-check
// Classes: what the model says as chips, and finding one of a thousand by its name.

import { byId, el, keep } from "./element.js";

/** The five likeliest as chips; the class that is looked at is pressed. */
export function showChips(info, target, against, choose) {
  const best = info.predicted.map((one) => one.target);
  const shown = best.includes(target) ? info.predicted : [...info.predicted, { target, score: null }];
  keep(
    byId("chips"),
    shown.map((one) => ({ key: `${one.target}`, ...one })),
    ({ target: mine }) =>
      el(
        "button",
        { type: "button", class: "class-chip", onclick: () => choose(mine) },
        el("span", { class: "name" }),
        el("span", { class: "score" }),
        el("i", { class: "fill" }),
      ),
    (chip, { target: mine, score }) => {
      chip.setAttribute("aria-pressed", mine === target);
      chip.classList.toggle("against", mine === against);
      chip.title = info.labels[mine];
      chip.querySelector(".name").textContent = info.labels[mine];
      chip.querySelector(".score").textContent = score === null ? "" : score.toFixed(3);
      chip.querySelector(".fill").style.width = `${100 * Math.min(Math.max(score ?? 0, 0), 1)}%`;
    },
  );
}

/** The class that words name: { index }, or { problem } with what to do about it. */
export function findClass(words, labels) {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return { problem: "Type the name of a class." };
  const lowered = labels.map((label) => label.toLowerCase());
  const exact = lowered.flatMap((label, k) => (label === wanted ? [k] : []));
  if (exact.length === 1) return { index: exact[0] };
  if (/^\d+$/.test(wanted) && Number(wanted) < labels.length && !exact.length) return { index: Number(wanted) };
  // Whole words before their beginnings, and those before any letters: "cat" is no oystercatcher.
  const parts = lowered.map((label) => label.split(/[^\p{L}\p{N}]+/u));
  const whole = (k) => parts[k].includes(wanted),
    begun = (k) => parts[k].some((part) => part.startsWith(wanted));
  for (const fits of [whole, begun, (k) => lowered[k].includes(wanted)]) {
    const found = [...labels.keys()].filter(fits);
    if (found.length === 1 && begun(found[0])) return { index: found[0] };
    if (found.length)
      return { problem: `“${words.trim()}” is not the name of a class. Did you mean`, near: found.slice(0, 5) };
  }
  return { problem: `No class is called “${words.trim()}”. The map is still that of the class before.` };
}

/** An input that chooses a class; what it does not know it says, with the nearest to choose from. */
export function classInput(input, place, labels, choose) {
  const refuse = (words = "", near = []) => {
    input.setAttribute("aria-invalid", Boolean(words));
    place.replaceChildren(
      ...(words ? [el("span", {}, `${words} `)] : []),
      ...near.map((k) =>
        el(
          "button",
          {
            type: "button",
            onclick: () => {
              refuse();
              choose(k);
            },
          },
          labels()[k],
        ),
      ),
    );
  };
  let typing = false; // what is being typed is not replaced by news
  input.oninput = () => {
    typing = true;
  };
  input.onblur = () => {
    typing = false;
  };
  input.onchange = () => {
    typing = false;
    if (!input.value.trim() && input.dataset.optional) {
      refuse();
      choose(null);
      return;
    }
    const { index, problem, near } = findClass(input.value, labels());
    refuse(problem, near);
    if (index !== undefined) choose(index);
  };
  input.onfocus = () => input.select();
  return {
    clear: () => refuse(),
    show: (label) => {
      if (input.value !== label && !typing && input.getAttribute("aria-invalid") !== "true") input.value = label;
    },
  };
}
