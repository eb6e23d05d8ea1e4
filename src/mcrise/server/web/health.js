// A line at the top of the page while jobs are not being worked on, or cannot be written down.

import { askJson } from "./api.js";

const LOOK = 5000; // milliseconds between two looks
const line = document.createElement("p");
line.id = "health";
line.setAttribute("role", "alert");
line.hidden = true;
document.body.prepend(line);

async function look() {
  if (document.hidden) return;
  const trouble = await askJson("health").then((worker) => worker.trouble, () => "");
  line.hidden = !trouble;
  if (line.textContent !== trouble) line.textContent = trouble;
}

setInterval(look, LOOK);
look();
