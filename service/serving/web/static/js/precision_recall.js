/** The precision-recall curve with its band, and thresholds beside it. */

import { bottomAxis, figure, frame, percentAxis } from "./chart.js";
import { h, s } from "./dom.js";
import { bounds, interval, percent, threshold } from "./format.js";

const HEIGHT = 340;
const DIAMOND = 8;

/** @typedef {{performance: any, picked: number, width: number}} Drawn a performance, and which of its thresholds is picked */

/** @param {Drawn} drawn */
export function curveView({ performance, picked, width }) {
  const of = { ...frame(width, HEIGHT), bottom: HEIGHT - 40, top: 26 };
  const x = d3.scaleLinear([0, 1], [of.left, of.right]);
  const y = d3.scaleLinear([0, 1], [of.bottom, of.top]);
  const points = performance.curve.filter((/** @type {any} */ point) => point.precision);
  const band = d3.area(
    (/** @type {any} */ p) => x(p.recall),
    (/** @type {any} */ p) => y(p.precision.lower),
    (/** @type {any} */ p) => y(p.precision.upper),
  );
  const line = d3.line(
    (/** @type {any} */ p) => x(p.recall),
    (/** @type {any} */ p) => y(p.precision.median),
  );
  const at = performance.thresholds[picked];
  return [
    figure(
      of,
      {
        title: "Precision by recall",
        label: `Precision-recall curve of class ${performance.positive_class}; at the threshold that is picked, ${words(at)}`,
      },
      percentAxis(y, of),
      bottomAxis(x, of, (value) => `${Math.round(100 * value)}`, 60),
      s("text", { x: 0, y: 12 }, "precision, %"),
      s("text", { x: of.right, y: HEIGHT - 6, "text-anchor": "end" }, "recall, %"),
      s("path", { class: "band", d: band(points) }),
      s("path", { class: "course", d: line(points) }),
      targets(performance, x, y, of),
      ranges(at, x, y),
      mark(performance.thresholds[performance.best], "best", x, y, (cx, cy) => s("circle", { class: "best", cx, cy, r: 11 })),
      mark(performance.thresholds[performance.operating], "in use", x, y, (cx, cy) =>
        s("path", { class: "used", d: diamond(cx, cy) }),
      ),
      mark(at, "picked", x, y, (cx, cy) => s("circle", { class: "mean picked", cx, cy, r: 4.5 })),
      points.map((/** @type {any} */ point, /** @type {number} */ i) => readout(point, i, points, x, of)),
    ),
    legend(performance),
  ];
}

/** @param {any} at a threshold */
const words = (at) =>
  at.recall && at.precision ? `precision ${interval(at.precision)}, recall ${interval(at.recall)}` : "no estimate";

/** @param {number} cx @param {number} cy */
const diamond = (cx, cy) =>
  `M${cx},${cy - DIAMOND}L${cx + DIAMOND},${cy}L${cx},${cy + DIAMOND}L${cx - DIAMOND},${cy}Z`;

/** @param {any} at a threshold @param {string} name @param {any} x @param {any} y
 * @param {(cx: number, cy: number) => SVGElement} shape */
function mark(at, name, x, y, shape) {
  if (!at.recall || !at.precision) return null;
  return s(
    "g",
    { class: "point" },
    s("title", {}, `Threshold ${name}: ${words(at)}`),
    shape(x(at.recall.median), y(at.precision.median)),
  );
}

/** How far precision and recall may be off. @param {any} at a threshold @param {any} x @param {any} y */
function ranges(at, x, y) {
  if (!at.recall || !at.precision) return null;
  const [cx, cy] = [x(at.recall.median), y(at.precision.median)];
  return [
    s("line", { class: "range", x1: x(at.recall.lower), x2: x(at.recall.upper), y1: cy, y2: cy }),
    s("line", { class: "range", x1: cx, x2: cx, y1: y(at.precision.lower), y2: y(at.precision.upper) }),
  ];
}

/** Lines at the targets that the axes can show. @param {any} performance @param {any} x @param {any} y
 * @param {import("./chart.js").Frame} of */
function targets(performance, x, y, of) {
  const wanted = (/** @type {string} */ name) =>
    performance.measures.find((/** @type {any} */ one) => one.measure === name).target;
  const [precision, recall] = [wanted("precision"), wanted("recall")];
  return [
    precision !== null && [
      s("line", { class: "target", x1: of.left, x2: of.right, y1: y(precision), y2: y(precision) }),
      s("text", { class: "target", x: of.left + 6, y: y(precision) + 15 }, `at least ${threshold(precision)}`),
    ],
    recall !== null && [
      s("line", { class: "target", x1: x(recall), x2: x(recall), y1: of.top, y2: of.bottom }),
      s(
        "text",
        { class: "target", x: x(recall) - 6, y: of.bottom - 8, "text-anchor": "end" },
        `at least ${threshold(recall)}`,
      ),
    ],
  ];
}

/** An area that shows its values when you point at it. @param {any} point @param {number} i @param {any[]} points
 * @param {any} x @param {import("./chart.js").Frame} of */
function readout(point, i, points, x, of) {
  const left = i ? x((points[i - 1].recall + point.recall) / 2) : of.left;
  const right = i < points.length - 1 ? x((points[i + 1].recall + point.recall) / 2) : of.right;
  return s(
    "rect",
    { class: "readout", x: left, width: right - left, y: of.top, height: of.bottom - of.top },
    s("title", {}, `Recall ${percent(point.recall)}: precision ${percent(point.precision.median)} ${bounds(point.precision)}`),
  );
}

/** @param {any} performance */
function legend(performance) {
  const sample = (/** @type {SVGElement[]} */ ...marks) =>
    s("svg", { class: "chart-sample", width: 24, height: 20, "aria-hidden": "true" }, marks);
  return h(
    "p",
    { class: "legend" },
    h("span", {}, sample(s("circle", { class: "mean picked", cx: 12, cy: 10, r: 4.5 })), "picked"),
    h("span", {}, sample(s("path", { class: "used", d: diamond(12, 10) })), "in use"),
    h("span", {}, sample(s("circle", { class: "best", cx: 12, cy: 10, r: 9 })), "best"),
    h(
      "span",
      {},
      sample(
        s("rect", { class: "band", x: 0, y: 3, width: 24, height: 14 }),
        s("path", { class: "course", d: "M0,10H24" }),
      ),
      `median, with ${threshold(performance.interval)} band`,
    ),
  );
}
