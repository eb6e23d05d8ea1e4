// The address holds all that one sees: the level, what is open, and how it is looked at.
//
//   #image/0123456789abcdef?class=14&vs=17&color=blue&above=0.02&finding=1a2b3c4d
//   #whatif/0123456789abcdef     #overview?class=stop&wrong=yes     #welcome

const LEVELS = ["image", "whatif", "overview", "welcome"];
const ID = /^[0-9a-f]{16}$/;

export function read() {
  const [path, rest = ""] = location.hash.slice(1).split("?");
  const [level, id] = ID.test(path) ? ["image", path] : path.split("/"); // a bare id was all there was once
  return {
    level: LEVELS.includes(level) ? level : "",
    id: id ?? null,
    ...Object.fromEntries(new URLSearchParams(rest)),
  };
}

export function write({ level, id, ...rest }) {
  const set = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const asked = new URLSearchParams(set).toString();
  return `#${level}${id ? `/${id}` : ""}${asked ? `?${asked}` : ""}`;
}

let listener = () => {};

/** Change some of the address; a step that `back` undoes unless it only `replace`s. */
export function go(changes, { replace = false } = {}) {
  const address = write({ ...read(), ...changes });
  if (address === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  listener(read());
}

/** Leave for another place, with nothing of this one's. */
export function leave(place) {
  history.pushState(null, "", write(place));
  listener(read());
}

export function onMove(moved) {
  listener = moved;
  window.addEventListener("popstate", () => moved(read()));
}
