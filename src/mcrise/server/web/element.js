// @ts-check
// Elements: made by name, properties and children. Text is never read as HTML.

const SVG = "http://www.w3.org/2000/svg";

/**
 * `el("a", { class: "x", href, onclick, "aria-label": words }, child, "text")`.
 * @param {string} tag
 * @param {Record<string, any>} given
 * @returns {any}
 */
export function el(tag, given = {}, ...children) {
  return dress(document.createElement(tag), given, children);
}

/**
 * @param {string} tag
 * @param {Record<string, any>} given
 * @returns {any}
 */
export function svg(tag, given = {}, ...children) {
  return dress(document.createElementNS(SVG, tag), given, children);
}

function dress(made, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "checked" || name === "value" || name === "disabled") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** @type {(id: string) => any} */
export const byId = (id) => document.getElementById(id);

/** A small disc of a color; its name stands beside it. */
export function swatch(color) {
  const disc = el("i", { class: "swatch", "aria-hidden": "true" });
  if (color) disc.style.background = color;
  return disc;
}

/** A name on two lines at most. */
export const named = (name) => el("span", { class: "name", title: name }, name);

/**
 * Show the children that are wanted, keeping those of the same key and with them the focus.
 * @param {any} place
 * @param {any[]} wanted
 * @param {(one: any) => any} make
 * @param {(child: any, one: any) => void} [update]
 */
export function keep(place, wanted, make, update) {
  const there = new Map([...place.children].map((child) => [child.dataset.key, child]));
  const children = wanted.map((one) => {
    const child = there.get(one.key) ?? make(one);
    child.dataset.key = one.key;
    update?.(child, one);
    return child;
  });
  for (const child of [...place.children]) if (!children.includes(child)) child.remove();
  children.forEach((child, i) => {
    if (place.children[i] !== child) place.insertBefore(child, place.children[i] ?? null);
  });
}
