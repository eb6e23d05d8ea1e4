// @ts-check
// The answer at the top of an image: what the model says, what it should have said, and the cards of a comparison.

import { byId, el, keep } from "./element.js";

const quoted = (label) => `‘${label}’`;

/** Prediction, runner-up and true label as a headline. */
export function showHeadline({ predicted, labels, truth }) {
  const [best, second] = predicted,
    wrong = truth !== null && truth !== best.target;
  const mark =
    truth === null
      ? null
      : el(
          "span",
          { class: wrong ? "mark wrong" : "mark right" },
          wrong ? `✗ wrong: the true label is ${quoted(labels[truth])}` : "✓ right",
        );
  const next = second
    ? el("span", { class: "next" }, `runner-up ${quoted(labels[second.target])} ${second.score.toFixed(2)}`)
    : null;
  byId("headline").replaceChildren(
    ...[
      el("span", {}, "Predicted ", el("b", {}, quoted(labels[best.target])), ` ${best.score.toFixed(2)}`),
      mark,
      next,
    ].filter(Boolean),
  );
}

/** What of the photograph the model gets, where that is not all of it. */
export function showFrame(id, { original_size: [rows, columns], box: [top, left, bottom, right] }) {
  const whole = top < 1 && left < 1 && rows - bottom < 1 && columns - right < 1,
    place = byId("frame");
  place.hidden = whole;
  if (whole || place.dataset.id === id) return;
  place.dataset.id = id;
  const photo = byId("frame-photo"),
    [box] = photo.querySelectorAll("rect");
  photo.querySelector("svg").setAttribute("viewBox", `0 0 ${columns} ${rows}`);
  for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top }))
    box.setAttribute(name, value);
  const image = photo.querySelector("img");
  photo.hidden = false;
  image.onerror = () => {
    photo.hidden = true;
  };
  image.src = `/api/jobs/${id}/photo.jpg`;
  const words = [top, bottom, left, right].map(Math.round);
  byId("frame-words").textContent =
    `Rows ${words[0]} to ${words[1]} and columns ${words[2]} to ${words[3]} of ` +
    `${rows} x ${columns} pixels. The rest is cut off before the model sees the picture.`;
}

/** Cards of A and B with what the model says of each; the sentence says what differs, or why nothing is subtracted. */
export function showComparison({ cards = [], sentence = "", reason = "" }) {
  byId("comparison").hidden = !cards.length;
  keep(
    byId("cards"),
    cards.map((card) => ({ key: `${card.letter} ${card.picture} ${card.title}`, ...card })),
    makeCard,
  );
  byId("differs").textContent = sentence || reason;
  byId("differs").classList.toggle("none", Boolean(reason));
}

function makeCard({ letter, picture, title, under, top }) {
  const line = ({ label, score }) =>
    el(
      "li",
      {},
      el("span", { class: "name", title: label }, label),
      el("span", { class: "score" }, score === null ? "not in the top five" : score.toFixed(2)),
      bar(score),
    );
  return el(
    "section",
    { class: "card", "aria-label": `${letter}: ${title}` },
    el("img", { src: picture, alt: "" }),
    el(
      "div",
      {},
      el("h2", {}, el("span", { class: "letter" }, letter), ` ${title}`),
      el("p", { class: "hint" }, under),
      el("ul", { class: "top-three" }, ...top.map(line)),
    ),
  );
}

function bar(score) {
  const fill = el("i");
  fill.style.width = `${100 * Math.min(Math.max(score ?? 0, 0), 1)}%`;
  return el("span", { class: "score-bar", "aria-hidden": "true" }, fill);
}
