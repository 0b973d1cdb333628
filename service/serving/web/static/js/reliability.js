/** How accurate a group is where the model says so much. */

import { bottomAxis, figure, frame, percentAxis } from "./chart.js";
import { s } from "./dom.js";
import { interval, percent } from "./format.js";

const SHARE_HEIGHT = 44;

/** @param {any} reliability @param {number} width */
export function reliabilityView(reliability, width) {
  const of = frame(width, 260);
  const x = d3.scaleLinear([0, 1], [of.left, of.right]);
  const y = d3.scaleLinear([0, 1], [of.bottom, of.top]);
  const most = Math.max(...reliability.bins.map((/** @type {any} */ bin) => bin.share), 0.01);
  return figure(
    of,
    {
      title: "Reliability: accuracy by score",
      label: `Reliability diagram; expected calibration error ${interval(reliability.ece)}`,
      note: `Below the diagonal the model is overconfident. ECE ${interval(reliability.ece)}. Bars: share of traffic.`,
    },
    percentAxis(y, of),
    bottomAxis(x, of, (value) => `${Math.round(100 * value)}`, 60),
    reliability.bins.map((/** @type {any} */ bin) => shareBar(bin, x, of, most)),
    s("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
    reliability.bins.map((/** @type {any} */ bin) => marks(bin, x, y)),
  );
}

/** @param {any} bin @param {any} x @param {import("./chart.js").Frame} of @param {number} most */
function shareBar(bin, x, of, most) {
  const height = (SHARE_HEIGHT * bin.share) / most;
  const left = x(bin.lower_edge) + 1;
  return s("rect", {
    class: "share",
    x: left,
    width: Math.max(1, x(bin.upper_edge) - left - 1),
    y: of.bottom - height,
    height,
  });
}

/** @param {any} bin @param {any} x @param {any} y */
function marks(bin, x, y) {
  const at = x(bin.score_mean);
  const words = `Score ${percent(bin.score_mean)}: accuracy ${interval(bin.accuracy)}, ${percent(bin.share)} of the group's traffic`;
  return s(
    "g",
    { class: "bin" },
    s("title", {}, words),
    s("line", { class: "reach", x1: at, x2: at, y1: y(0), y2: y(1) }),
    s("line", { class: "range", x1: at, x2: at, y1: y(bin.accuracy.lower), y2: y(bin.accuracy.upper) }),
    s("circle", { class: "mean", cx: at, cy: y(bin.accuracy.mean), r: 4.5 }),
  );
}
