// A toast: a sentence for a few seconds, with one thing to do about it.

import { byId, el } from "./element.js";

let timer = null;

export function toast(words, seconds = 5, label = "", act = null) {
  clearTimeout(timer);
  const hide = () => byId("toast").replaceChildren();
  byId("toast").replaceChildren(el("span", {}, words), ...(act ? [el("button", { type: "button", onclick: () => { hide(); act(); } }, label)] : []));
  timer = setTimeout(hide, 1000 * seconds);
}
