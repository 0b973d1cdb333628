/** How far recent traffic is from its reference, without labels. */

import { bottomAxis, figure, frame, percentAxis } from "./chart.js";
import { h, s } from "./dom.js";
import { count, percent, probability, when } from "./format.js";

/** @param {any} drift @param {number} width */
export function driftView(drift, width) {
  const of = frame(width, 220);
  const shares = drift.bins.flatMap((/** @type {any} */ bin) => [bin.reference, bin.recent]);
  const x = d3.scaleLinear([0, 1], [of.left, of.right]);
  const y = d3.scaleLinear([0, Math.max(...shares, 0.01)], [of.bottom, of.top]);
  return figure(
    of,
    {
      title: "Drift: score distribution, reference vs. now",
      label: `Shares of scores in the reference and now. ${drift.sentence}`,
      note: note(drift),
    },
    percentAxis(y, of, 4),
    bottomAxis(x, of, (value) => `${Math.round(100 * value)}`, 60),
    drift.bins.map((/** @type {any} */ bin) => bars(bin, x, y, of)),
  );
}

/** @param {any} bin @param {any} x @param {any} y @param {import("./chart.js").Frame} of */
function bars(bin, x, y, of) {
  const left = x(bin.lower_edge) + 1;
  const width = Math.max(1, (x(bin.upper_edge) - left - 1) / 2);
  const score = `${Math.round(100 * bin.lower_edge)} to ${Math.round(100 * bin.upper_edge)}`;
  const words = `Score ${score}: ${percent(bin.reference)} in the reference, ${percent(bin.recent)} now`;
  const bar = (/** @type {string} */ kind, /** @type {number} */ share, /** @type {number} */ at) =>
    s("rect", { class: kind, x: at, width, y: y(share), height: of.bottom - y(share) });
  return s(
    "g",
    {},
    s("title", {}, words),
    bar("share", bin.reference, left),
    bar("recent", bin.recent, left + width),
  );
}

/** @param {any} drift */
function note(drift) {
  return [
    h("strong", {}, drift.sentence),
    ` Grey: ${count(drift.reference_predictions)} predictions of the reference, which ended `,
    when(drift.reference_until),
    `; blue: ${count(drift.recent_predictions)} since `,
    when(drift.recent_since),
    ".",
    drift.expected_accuracy !== null &&
      ` Accuracy expected from recent scores: ${percent(drift.expected_accuracy)}; by labels it is lower with a probability of ${probability(drift.below_expected)}.`,
    drift.volume_ratio !== null && ` Volume: ${percent(drift.volume_ratio)} of the reference.`,
  ];
}
