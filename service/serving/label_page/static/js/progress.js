/** How far the person has got, and what labels have done to the model's interval. */

import { h } from "./dom.js";
import { count } from "./format.js";

/** @param {number} width in [0, 1] */
const points = (width) => (100 * width).toFixed(1);

/**
 * @param {object} of
 * @param {number} of.answered @param {number} of.skipped @param {number} of.left requests that wait, and those of this session
 * @param {number} of.unsent @param {boolean} of.isBlocked whether answers cannot be sent now
 * @param {Record<string, number | null>} of.widths by model @param {Record<string, number>} of.widthsBefore
 */
export function progressView({ answered, skipped, left, unsent, isBlocked, widths, widthsBefore }) {
  const done = answered + skipped;
  return h(
    "dl",
    { class: "progress" },
    fact("Labelled", count(answered)),
    fact("Skipped", done ? `${count(skipped)} (${Math.round((100 * skipped) / done)}%)` : "0"),
    fact("Left", count(left)),
    unsent > 0 && fact(isBlocked ? "Not sent yet" : "Sending", count(unsent), isBlocked ? "fails" : ""),
    Object.entries(widths).map(([model, width]) => width !== null && interval(model, width, widthsBefore[model] ?? width)),
  );
}

/** @param {string} term @param {string} value @param {string} [kind] */
function fact(term, value, kind = "") {
  return h("div", { key: term, class: kind }, h("dt", {}, term), h("dd", {}, value));
}

/** @param {string} model @param {number} width @param {number} before */
function interval(model, width, before) {
  const words = width === before ? `${points(width)} points wide` : `${points(before)} → ${points(width)} points wide`;
  const title =
    "Width of the 95% interval of the model's accuracy, when you began and now. It follows after every 10 to 20 labels of all people: single labels would show what the model predicted.";
  return h("div", { key: `width-${model}`, title }, h("dt", {}, `Accuracy of ${model}, 95% interval`), h("dd", {}, words));
}
