/** One item, or a grid of images. */

import { h } from "./dom.js";
import { percent, when } from "./format.js";
import { imagesOf } from "./images.js";
import { markTiny, payloadView } from "./payload.js";

/**
 * @typedef {object} Item
 * @property {any} request
 * @property {"answer" | "skip" | "retraction" | null} kind what was said of it
 * @property {string} true_class empty unless it was answered
 */

/** @param {Item} item */
export const said = (item) =>
  ({ answer: `labelled ${item.true_class}`, skip: "skipped", retraction: "label taken back" })[item.kind ?? ""] ?? "not labelled";

/** @param {Item} item @param {string[]} origins @param {boolean} isRevised */
export function itemView(item, origins, isRevised) {
  const { request } = item;
  return h(
    "article",
    { class: "item", "aria-labelledby": "item-title" },
    h("h1", { id: "item-title" }, h("span", { class: "note" }, `${request.model} · `), request.item_id),
    h("p", { class: "facts-of-item note" }, facts(request)),
    isRevised && h("p", { class: "revised" }, `You ${past(item)}. Choose another class, or press Escape to keep it.`),
    payloadView(request, origins),
  );
}

/** @param {Item} item */
function past(item) {
  if (item.kind === "answer") return `labelled this item ${item.true_class}`;
  return item.kind === "skip" ? "skipped this item" : "took your label of this item back";
}

/** @param {any} request */
function facts(request) {
  const guess = request.prediction;
  return [
    h("span", {}, "Deadline ", when(Date.parse(request.deadline) / 1000, "until")),
    request.opinion > 1 && h("span", { class: "badge" }, `Opinion ${request.opinion}: others have labelled this item`),
    guess && h("span", { class: "badge" }, `The model predicts ${guess.predicted_class} (${percent(guess.score)})`),
  ];
}

/** @param {Item[]} items @param {string[]} origins @param {(index: number) => void} select */
export function gridView(items, origins, select) {
  return h(
    "div",
    {},
    h("h1", { id: "item-title" }, h("span", { class: "note" }, `${items[0].request.model} · `), `${items.length} images`),
    h("ul", { class: "grid", "aria-labelledby": "item-title" }, items.map((item, index) => cell(item, origins, () => select(index)))),
  );
}

/** @param {Item} item @param {string[]} origins @param {() => void} select */
function cell(item, origins, select) {
  const image = h("img", { src: imagesOf(item.request, origins)[0], alt: "", referrerpolicy: "no-referrer", decoding: "async" });
  image.onload = () => markTiny(/** @type {HTMLImageElement} */ (image));
  return h("li", {}, h("button", { type: "button", onclick: select }, image, h("span", { class: "said" })));
}

/** Brings the cells of a grid up to date, whose images stay. @param {Element} grid @param {Item[]} items
 * @param {number} current */
export function markCells(grid, items, current) {
  for (const [index, button] of [...grid.querySelectorAll("button")].entries()) {
    const item = items[index];
    const isCurrent = index === current;
    button.className = item.kind ? "cell done" : "cell";
    button.tabIndex = isCurrent ? 0 : -1;
    button.toggleAttribute("aria-current", false);
    if (isCurrent) button.setAttribute("aria-current", "true");
    button.setAttribute("aria-label", `Item ${item.request.item_id}, ${said(item)}`);
    const words = /** @type {HTMLElement} */ (button.querySelector(".said"));
    words.textContent = item.kind === "answer" ? item.true_class : item.kind ? said(item) : "";
  }
}
