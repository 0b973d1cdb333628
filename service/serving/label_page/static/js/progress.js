/** How far the person has got, and what the labels of this tab suffice for. */

import { h } from "./dom.js";
import { count } from "./format.js";

const LEAST_LABELS = 10;

/** Points of the 95% interval of a share of one half, the widest there is, from so many random labels:
 * 2 × 1.96 √(0.25 / labels). @param {number} labels */
const points = (labels) => ((100 * 1.96) / Math.sqrt(labels)).toFixed(0);

/**
 * @param {object} of
 * @param {number} of.answered @param {number} of.skipped @param {number} of.left requests that wait, and those of this session
 * @param {number} of.unsent @param {boolean} of.isBlocked whether answers cannot be sent now
 * @param {Record<string, number>} of.labels that this tab has given, by model
 */
export function progressView({ answered, skipped, left, unsent, isBlocked, labels }) {
  const done = answered + skipped;
  return h(
    "dl",
    { class: "progress" },
    fact("Labelled", count(answered)),
    fact("Skipped", done ? `${count(skipped)} (${Math.round((100 * skipped) / done)}%)` : "0"),
    fact("Left", count(left)),
    unsent > 0 && fact(isBlocked ? "Not sent yet" : "Sending", count(unsent), isBlocked ? "fails" : ""),
    Object.entries(labels).map(([model, given]) => given >= LEAST_LABELS && interval(model, given)),
  );
}

/** @param {string} term @param {string} value @param {string} [kind] */
function fact(term, value, kind = "") {
  return h("div", { key: term, class: kind }, h("dt", {}, term), h("dd", {}, value));
}

/** Depends on the number of labels alone: whether they agree with the model is nothing that the page may show.
 * @param {string} model @param {number} given labels */
function interval(model, given) {
  const title =
    "Your labels in this tab would give a 95% interval of the accuracy that is at most so wide, if their items were drawn at random. It does not depend on what you answer.";
  return h("div", { key: `width-${model}`, title }, h("dt", {}, `Your labels of ${model} alone`), h("dd", {}, `interval up to ${points(given)} points wide`));
}
