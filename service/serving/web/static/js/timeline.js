/** Earlier estimates of a group. */

import { bottomAxis, figure, frame, percentAxis, timeFormat } from "./chart.js";
import { s } from "./dom.js";
import { pluralize, interval, moment, threshold } from "./format.js";

/** @param {any} timeline @param {number | null} wanted @param {any} change since when it has been less accurate, if it
 * has @param {number} width */
export function timelineView(timeline, wanted, change, width) {
  const points = timeline.points;
  const of = frame(width, 260);
  const words = { title: "Accuracy over time", label: "Accuracy over time" };
  if (!points.length) return figure(frame(width, 40), { ...words, note: "No history yet." });
  const [first, last] = [points[0], points[points.length - 1]];
  const times = points.map((/** @type {any} */ point) => new Date(point.time * 1000));
  const alone = points.length === 1;
  const x = d3.scaleTime(
    alone ? [new Date(+times[0] - 30_000), new Date(+times[0] + 30_000)] : [times[0], times[times.length - 1]],
    [of.left, of.right],
  );
  const low = Math.min(wanted ?? 1, ...points.map((/** @type {any} */ point) => point.accuracy.lower));
  const y = d3.scaleLinear([Math.max(0, Math.floor(low * 10 - 0.2) / 10), 1], [of.bottom, of.top]);
  const at = (/** @type {any} */ point) => x(point.time * 1000);
  const band = d3.area(
    at,
    (/** @type {any} */ p) => y(p.accuracy.lower),
    (/** @type {any} */ p) => y(p.accuracy.upper),
  );
  const line = d3.line(at, (/** @type {any} */ p) => y(p.accuracy.mean));
  words.label = `Accuracy from ${interval(first.accuracy)} at ${moment(first.time)} to ${interval(last.accuracy)} at ${moment(last.time)}`;
  return figure(
    of,
    { ...words, note: "Line: mean. Band: credible interval, with the labels up to that time." },
    percentAxis(y, of),
    bottomAxis(x, of, timeFormat((times[times.length - 1] - times[0]) / 1000)),
    s("path", { class: "band", d: band(points) }),
    s("path", { class: "course", d: line(points) }),
    wanted !== null && wantedLine(y, of, wanted),
    change && change.at >= first.time && change.at <= last.time && changeLine(x(change.at * 1000), of),
    alone &&
      s("line", {
        class: "range",
        x1: at(last),
        x2: at(last),
        y1: y(last.accuracy.lower),
        y2: y(last.accuracy.upper),
      }),
    s("circle", { class: "mean", cx: at(last), cy: y(last.accuracy.mean), r: 4.5 }),
    points.map((/** @type {any} */ point, /** @type {number} */ i) => readout(point, i, points, at, of)),
  );
}

/** @param {any} y @param {import("./chart.js").Frame} of @param {number} wanted */
function wantedLine(y, of, wanted) {
  return [
    s("line", { class: "target", x1: of.left, x2: of.right, y1: y(wanted), y2: y(wanted) }),
    s("text", { class: "target", x: of.left + 6, y: y(wanted) - 5 }, `at least ${threshold(wanted)}`),
  ];
}

/** @param {number} at @param {import("./chart.js").Frame} of */
function changeLine(at, of) {
  const end = at > (of.left + of.right) / 2;
  return [
    s("line", { class: "change", x1: at, x2: at, y1: of.top, y2: of.bottom }),
    s(
      "text",
      { class: "change", x: at + (end ? -5 : 5), y: of.top + 10, "text-anchor": end ? "end" : "start" },
      "less accurate from here",
    ),
  ];
}

/** An area that shows its values when you point at it. @param {any} point @param {number} i @param {any[]} points
 * @param {(point: any) => number} at @param {import("./chart.js").Frame} of */
function readout(point, i, points, at, of) {
  const left = i ? (at(points[i - 1]) + at(point)) / 2 : of.left;
  const right = i < points.length - 1 ? (at(point) + at(points[i + 1])) / 2 : of.right;
  const words = `${moment(point.time)}: ${interval(point.accuracy)}, ${pluralize(point.labels, "label")}`;
  return s(
    "rect",
    { class: "readout", x: left, width: Math.max(0, right - left), y: of.top, height: of.bottom - of.top },
    s("title", {}, words),
  );
}
