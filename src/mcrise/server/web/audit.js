// @ts-check
// The page of an audit: classes are sorted by any column, and open where a link leads to them.

export {}; // a module: its names are its own

const table = /** @type {HTMLTableElement} */ (document.querySelector(".classes"));
const [body] = table.tBodies,
  heads = [...table.tHead.rows[0].cells];

for (const [column, head] of heads.entries()) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sort(column, head));
  head.append(button);
}

/**
 * @param {number} column
 * @param {HTMLTableCellElement} head
 */
function sort(column, head) {
  const rows = [...body.rows].filter((row) => !row.classList.contains("all"));
  /** @param {HTMLTableRowElement} row */
  const key = (row) => row.cells[column].dataset.sort;
  const numbers = column > 0;
  // Numbers first from large to small, names from A to Z.
  const up = head.ariaSort === "none" ? !numbers : head.ariaSort === "descending";
  rows.sort((one, other) => {
    const order = numbers ? Number(key(one)) - Number(key(other)) : key(one).localeCompare(key(other));
    return up ? order : -order;
  });
  for (const one of heads) one.ariaSort = "none";
  head.ariaSort = up ? "ascending" : "descending";
  body.prepend(...rows);
}

function openLinked() {
  const target = document.getElementById(location.hash.slice(1));
  if (!(target instanceof HTMLDetailsElement)) return;
  target.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", openLinked);
openLinked();

// On paper there is nothing to open.
/** @type {HTMLDetailsElement[]} */
let unopened = [];
addEventListener("beforeprint", () => {
  unopened = [...document.querySelectorAll("details")].filter((one) => !one.open);
  for (const one of unopened) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of unopened) one.open = false;
});
