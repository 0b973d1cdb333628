/** Axes and frames of the larger charts, drawn by d3. */

import { h, s } from "./dom.js";

/** @typedef {{width: number, height: number, left: number, right: number, top: number, bottom: number}} Frame */

/** @param {number} width @param {number} height @returns {Frame} */
export const frame = (width, height) => ({
  width,
  height,
  left: 40,
  right: width - 12,
  top: 14,
  bottom: height - 26,
});

/** @param {any} axis made by d3 @param {string} name @param {string} transform */
function axisView(axis, name, transform) {
  const group = s("g", { class: `axis ${name}`, transform });
  d3.select(group).call(axis);
  return group;
}

/** Horizontal grid and labels in percent. @param {any} y @param {Frame} of @param {number} [ticks] */
export function percentAxis(y, of, ticks = 5) {
  const axis = d3
    .axisLeft(y)
    .ticks(ticks)
    .tickSize(of.left - of.right)
    .tickFormat((/** @type {number} */ v) => `${Math.round(100 * v)}`);
  return axisView(axis, "y", `translate(${of.left},0)`);
}

/** @param {any} y @param {Frame} of */
export function countAxis(y, of) {
  const axis = d3
    .axisLeft(y)
    .ticks(4)
    .tickSize(of.left - of.right)
    .tickFormat((/** @type {number} */ v) => (Number.isInteger(v) ? String(v) : ""));
  return axisView(axis, "y", `translate(${of.left},0)`);
}

/** @param {any} x @param {Frame} of @param {(value: any) => string} format @param {number} [spacing] room for one label */
export function bottomAxis(x, of, format, spacing = 130) {
  const axis = d3
    .axisBottom(x)
    .ticks(Math.max(3, Math.floor((of.right - of.left) / spacing)))
    .tickSizeOuter(0);
  return axisView(axis.tickFormat(format), "x", `translate(0,${of.bottom})`);
}

/** A chart with its caption. @param {Frame} of
 * @param {{title: string, label: string, note?: any, heading?: string}} words @param {any[]} marks */
export function figure(of, { title, label, note, heading = "h4" }, ...marks) {
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, h(heading, {}, title)),
    s("svg", { viewBox: `0 0 ${of.width} ${of.height}`, role: "img", "aria-label": label }, marks),
    note && h("p", { class: "note" }, note),
  );
}

/** Local time of day, with the day where the stretch is long. @param {number} seconds length of the stretch */
export function timeFormat(seconds) {
  if (seconds < 600) return d3.timeFormat("%H:%M:%S");
  return d3.timeFormat(seconds < 2 * 86400 ? "%H:%M" : "%d %b");
}
