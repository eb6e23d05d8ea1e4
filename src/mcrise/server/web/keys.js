// Keys: single letters, wherever no text is being written.

export function listenToKeys(acts) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const { target } = event;
    const writing = target.matches?.("input:not([type=checkbox], [type=radio], [type=range]), select, textarea");
    if (writing || event.altKey) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key.toLowerCase() === "z" && document.body.dataset.level === "whatif") { event.preventDefault(); acts[event.shiftKey ? "redo" : "undo"](); }
      return;
    }
    if (event.key === " " && target.matches?.("button, a, input, summary")) return;
    const act = /^[1-9]$/.test(event.key) ? () => acts.color(Number(event.key) - 1)
      : { "[": () => acts.step(-1), "]": () => acts.step(1), c: acts.compare, b: acts.brush, " ": acts.swap, n: acts.create, "?": acts.help }[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
