// @ts-check
// The address holds all that one sees: the level, what is open, how it is looked at, and the filter of the images.
//
//   #image/0123456789abcdef?class=14&vs=17&color=blue&above=0.02&finding=A&of=stop&answers=wrong
//   #whatif/0123456789abcdef     #overview?of=stop&answers=wrong&find=0001     #welcome

const LEVELS = ["image", "whatif", "overview", "welcome"];
const FILTER = ["of", "answers", "model", "x", "y", "find", "sort"];
const ID = /^[0-9a-f]{16}$/;

/**
 * The address as an object: its level, the id of a job, and all that is asked.
 * @returns {import("./types.js").Address}
 */
export function read() {
  const [path, rest = ""] = location.hash.slice(1).split("?");
  const [level, id] = ID.test(path) ? ["image", path] : path.split("/"); // a bare id was all there was once
  /** @type {Record<string, string>} */
  const asked = Object.fromEntries(new URLSearchParams(rest));
  if (level === "overview" && asked.class) {
    // as links of earlier versions say it
    asked.of = asked.class;
    delete asked.class;
  }
  return { level: LEVELS.includes(level) ? level : "", id: id ?? null, ...asked };
}

/** @param {any} place */
export function write({ level, id, ...rest }) {
  const set = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const asked = new URLSearchParams(set).toString();
  return `#${level}${id ? `/${id}` : ""}${asked ? `?${asked}` : ""}`;
}

/** What of an address says which images are meant, and in which order. */
export const filterOf = (address) => Object.fromEntries(FILTER.map((name) => [name, address[name]]));

/** An address with no filter but its order. */
export const unfiltered = () =>
  Object.fromEntries(FILTER.filter((name) => name !== "sort").map((name) => [name, null]));
