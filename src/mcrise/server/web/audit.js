// The page of an audit: classes are sorted by any column, and open where a link leads to them.

const table = document.querySelector(".classes");

for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sort(column, head));
  head.append(button);
}

function sort(column, head) {
  const rows = [...table.tBodies[0].rows].filter((row) => !row.classList.contains("all"));
  const key = (row) => row.cells[column].dataset.sort;
  const numbers = column > 0;
  // Numbers first from large to small, names from A to Z.
  const up = head.ariaSort === "none" ? !numbers : head.ariaSort === "descending";
  const order = (one, other) =>
    numbers ? key(one) - key(other) : key(one).localeCompare(key(other));
  rows.sort((one, other) => (up ? 1 : -1) * order(one, other));
  for (const other of table.tHead.rows[0].cells) other.ariaSort = "none";
  head.ariaSort = up ? "ascending" : "descending";
  table.tBodies[0].prepend(...rows);
}

function open() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.localName === "details") {
    target.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", open);
open();

// On paper there is nothing to open.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const one of closed) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of closed) one.open = false;
});
