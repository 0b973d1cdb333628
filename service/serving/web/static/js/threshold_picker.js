/** A slider along the thresholds, and what would happen at each. */

import { h } from "./dom.js";
import { bounds, percent, plain, pointEstimate, probability, threshold } from "./format.js";

const NBSP = "\u00a0";
const FINE = 0.99;
const MEASURES = /** @type {const} */ ([
  ["precision", "Precision"],
  ["recall", "Recall"],
  ["f1", "F1"],
  ["false_positive_rate", "False positive rate"],
]);

/** What readers picked, by model and assessment: a name, or a score that is looked up as thresholds change.
 * @type {Map<string, "operating" | "best" | number | null>} */
const picks = new Map();

/** @param {any} performance */
const keyOf = (performance) => `${performance.model} ${performance.assessment}`;

/** Position of the threshold that is picked; the one in use before any is. @param {any} performance @returns {number} */
export function pickedOf(performance) {
  const pick = picks.get(keyOf(performance));
  if (pick === undefined || pick === "operating") return performance.operating;
  if (pick === "best") return performance.best;
  if (pick === null) return performance.thresholds.length - 1;
  const off = performance.thresholds.map((/** @type {any} */ one) => Math.abs((one.threshold ?? Infinity) - pick));
  return off.indexOf(Math.min(...off));
}

/** @param {any} performance a performance @param {number} picked @param {() => void} redraw */
export function pickerView(performance, picked, redraw) {
  const at = performance.thresholds[picked];
  const id = `threshold-${performance.assessment}`;
  const pick = (/** @type {"operating" | "best" | number | null} */ what) => {
    picks.set(keyOf(performance), what);
    redraw();
  };
  const slide = (/** @type {any} */ event) => pick(performance.thresholds[Number(event.target.value)].threshold);
  return h(
    "div",
    { class: "picker" },
    h("h4", {}, h("label", { for: id }, "Threshold")),
    h(
      "p",
      { class: "at" },
      h("output", { for: id, class: "figure" }, scoreOf(performance, picked)),
      " ",
      thresholdNotes(performance, picked),
    ),
    h("input", {
      id,
      type: "range",
      min: 0,
      max: performance.thresholds.length - 1,
      step: 1,
      value: picked,
      "aria-valuetext": valueText(performance, picked),
      oninput: slide,
    }),
    h(
      "p",
      { class: "actions" },
      jump("Best", "best", picked === performance.best, pick),
      jump("In use", "operating", picked === performance.operating, pick),
    ),
    h(
      "table",
      { class: "at-threshold" },
      h("caption", { class: "visually-hidden" }, "Performance at this threshold"),
      h(
        "tbody",
        {},
        MEASURES.map(([name, title]) => row(title, measured(at[name]), wanted(performance, name))),
        at.met !== null && row("P(all targets met)", h("span", { class: "value" }, probability(at.met)), ""),
        cost(performance, at),
      ),
    ),
    costNote(performance),
  );
}

/** @param {string} title @param {"operating" | "best"} what @param {boolean} there
 * @param {(what: "operating" | "best") => void} pick */
const jump = (title, what, there, pick) =>
  h(
    "button",
    { type: "button", class: "button quiet", "aria-pressed": String(there), onclick: () => pick(what) },
    title,
  );

/** A score, with more digits where many are near 0 or 1. @param {number} score */
function digits(score) {
  if (score > 0 && score < 1 - FINE) return Number(score.toPrecision(2)).toString();
  return score > FINE && score < 1 ? Number(score.toFixed(6)).toString() : score.toFixed(3);
}

/** The threshold in use as it was configured, others as they are. @param {any} performance @param {number} picked */
function scoreOf(performance, picked) {
  if (picked === performance.operating) return String(performance.threshold);
  const { threshold: score } = performance.thresholds[picked];
  return score === null ? "none" : digits(score);
}

/** @param {any} performance @param {number} picked */
function thresholdNotes(performance, picked) {
  const words = [
    picked === performance.operating && "in use",
    picked === performance.best && "the best",
    performance.thresholds[picked].threshold === null && "no item is predicted positive",
  ].filter(Boolean);
  return h("span", { class: "note" }, words.join(", "));
}

/** @param {any} performance @param {number} picked */
function valueText(performance, picked) {
  const at = performance.thresholds[picked];
  const values = MEASURES.slice(0, 2).map(([name, title]) =>
    at[name] ? `${title.toLowerCase()} ${percent(at[name].median)}` : "",
  );
  return [scoreOf(performance, picked), ...values].filter(Boolean).join(", ");
}

/** @param {string} title @param {any} value @param {string} note */
const row = (title, value, note) =>
  h(
    "tr",
    {},
    h("th", { scope: "row" }, title),
    h("td", {}, value),
    h("td", { class: "note" }, note),
  );

/** @param {import("./format.js").Interval | import("./format.js").Range | null} value */
const measured = (value) =>
  value
    ? [h("span", { class: "value" }, percent(pointEstimate(value))), " ", h("span", { class: "bounds" }, bounds(value))]
    : "unknown";

/** @param {any} performance @param {string} name */
function wanted(performance, name) {
  const { target } = performance.measures.find((/** @type {any} */ one) => one.measure === name);
  if (target === null) return "";
  return `${name === "false_positive_rate" ? "≤" : "≥"}${NBSP}${threshold(target)}`;
}

/** @param {any} performance @param {any} at */
function cost(performance, at) {
  if (!performance.error_costs.configured) return row("Misclassified", measured(at.cost), "");
  const { lower, mean, upper } = at.cost;
  const value = [
    h("span", { class: "value" }, plain(mean)),
    " ",
    h("span", { class: "bounds" }, `[${plain(lower)}, ${plain(upper)}]`),
  ];
  return row("Expected cost", value, "");
}

/** @param {any} performance */
function costNote(performance) {
  const { configured, false_positive: wrong, false_negative: missed } = performance.error_costs;
  if (!configured) return null;
  return h("p", { class: "note" }, `Of an item; a false positive costs ${plain(wrong)}, a false negative ${plain(missed)}.`);
}
