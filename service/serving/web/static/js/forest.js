/** Intervals as lines, on one axis for all rows. Positions are percentages, so nothing is measured or redrawn. */

import { h, s } from "./dom.js";
import { interval, percent, pointEstimate, threshold } from "./format.js";

/** @typedef {import("./format.js").Interval} Interval @typedef {import("./format.js").Range} Range @typedef {{low: number, high: number}} Axis */

/** The axis that holds all values, from a round number up to 1. @param {number[]} values @returns {Axis} */
export function axisOf(values) {
  const lowest = Math.min(0.9, ...values.filter((value) => Number.isFinite(value)));
  return { low: Math.max(0, Math.floor(lowest * 10 - 0.2) / 10), high: 1 };
}

/** @param {Axis} axis */
const placer = (axis) => (/** @type {number} */ value) =>
  `${(2 + (96 * (Math.min(axis.high, Math.max(axis.low, value)) - axis.low)) / (axis.high - axis.low)).toFixed(2)}%`;

/** @param {Axis} axis */
function ticks(axis) {
  return d3.ticks(axis.low, axis.high, axis.high - axis.low > 0.55 ? 5 : 4);
}

/** Labels of the axis, and the target if groups share one. @param {Axis} axis @param {number[]} targets */
export function axisView(axis, targets) {
  const place = placer(axis);
  const wanted = targets.length === 1 ? targets[0] : null;
  const shown = ticks(axis).filter(
    (tick) => wanted === null || Math.abs(tick - wanted) > 0.06 * (axis.high - axis.low),
  );
  return s(
    "svg",
    { class: "axis", "aria-hidden": "true" },
    shown.map((tick) =>
      s(
        "text",
        {
          x: place(tick),
          y: 14,
          "text-anchor": tick > axis.high - 0.01 ? "end" : tick < axis.low + 0.01 ? "start" : "middle",
        },
        `${Math.round(100 * tick)}`,
      ),
    ),
    wanted !== null &&
      s("text", { class: "target", x: place(wanted), y: 14, "text-anchor": "middle" }, threshold(wanted)),
  );
}

/** One row: thin line between the bounds that hold at all times, line from lower to upper, dot at the mean, hollow mark where the model's own scores are.
 * @param {any} group @param {Axis} axis */
export function forestRow(group, axis) {
  const wanted = group.min_accuracy;
  const place = placer(axis);
  const { lower, mean, upper } = group.accuracy;
  const always = group.evidence && group.evidence.lower !== null ? group.evidence : null;
  const label = `Accuracy ${interval(group.accuracy)}; mean score ${percent(group.score_mean)}`;
  return s(
    "svg",
    { class: `forest ${group.verdict}`, role: "img", "aria-label": label },
    s("title", {}, label),
    ticks(axis).map((tick) => s("line", { class: "grid", x1: place(tick), x2: place(tick), y1: "0%", y2: "100%" })),
    wanted !== null && s("line", { class: "target", x1: place(wanted), x2: place(wanted), y1: "0%", y2: "100%" }),
    always !== null &&
      s("line", { class: "always", x1: place(always.lower), x2: place(always.upper), y1: "50%", y2: "50%" }),
    s("line", { class: "range", x1: place(lower), x2: place(upper), y1: "50%", y2: "50%" }),
    s("circle", { class: "claimed", cx: place(group.score_mean), cy: "50%", r: 4 }),
    s("circle", { class: "mean", cx: place(mean), cy: "50%", r: 5 }),
  );
}

/** One interval alone, beside the threshold. @param {Interval | Range} value @param {number | null} wanted @param {string} kind */
export function span(value, wanted, kind) {
  const ends = [value.lower, value.upper, ...(wanted === null ? [] : [wanted])];
  const margin = 0.15 * (Math.max(...ends) - Math.min(...ends)) + 0.01;
  const place = placer({
    low: Math.max(0, Math.min(...ends) - margin),
    high: Math.min(1, Math.max(...ends) + margin),
  });
  return s(
    "svg",
    { class: `forest span ${kind}`, "aria-hidden": "true" },
    s("line", { class: "base", x1: "0%", x2: "100%", y1: "50%", y2: "50%" }),
    s("line", { class: "range", x1: place(value.lower), x2: place(value.upper), y1: "50%", y2: "50%" }),
    wanted !== null && s("line", { class: "target", x1: place(wanted), x2: place(wanted), y1: "5%", y2: "95%" }),
    s("circle", { class: "mean", cx: place(pointEstimate(value)), cy: "50%", r: 5 }),
  );
}

/** What the marks mean. @param {number[]} targets ascending @param {number} inside probability inside intervals */
export function forestLegend(targets, inside) {
  const sample = (/** @type {Array<SVGElement | false>} */ ...marks) =>
    s("svg", { class: "forest sample", width: 34, height: 14, "aria-hidden": "true" }, marks);
  return h(
    "p",
    { class: "legend" },
    h(
      "span",
      {},
      sample(
        s("line", { class: "range", x1: 2, x2: 32, y1: 7, y2: 7 }),
        s("circle", { class: "mean", cx: 17, cy: 7, r: 5 }),
      ),
      `estimated accuracy with ${threshold(inside)} interval`,
    ),
    h(
      "span",
      {},
      sample(s("line", { class: "always", x1: 2, x2: 32, y1: 7, y2: 7 })),
      "confidence sequence (valid at every moment)",
    ),
    h("span", {}, sample(s("circle", { class: "claimed", cx: 17, cy: 7, r: 4 })), "mean score"),
    targets.length > 0 &&
      h(
        "span",
        {},
        sample(s("line", { class: "target", x1: 17, x2: 17, y1: 0, y2: 14 })),
        targets.length === 1
          ? `target: at least ${threshold(targets[0])}`
          : `target of the group: ${threshold(targets[0])} to ${threshold(targets[targets.length - 1])}`,
      ),
  );
}
