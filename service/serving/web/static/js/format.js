/** One way to write each kind of number, everywhere. */

import { h } from "./dom.js";

const NBSP = "\u00a0";
const COUNT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const MOMENT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const UNITS = /** @type {const} */ ([
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
]);

/** @typedef {{lower: number, mean: number, upper: number}} Interval */

/** @typedef {{lower: number, median: number, upper: number}} Range */

/** @param {number} ratio */
const hundredths = (ratio) => (100 * ratio).toFixed(1);

/** "71.2%" @param {number} ratio */
export const percent = (ratio) => `${hundredths(ratio)}%`;

/** A probability: never said to be certain. @param {number} ratio */
export function probability(ratio) {
  if (ratio > 0.999) return `over${NBSP}99.9%`;
  if (ratio < 0.001) return `under${NBSP}0.1%`;
  return percent(ratio);
}

/** A threshold as it was configured: "80%". @param {number} ratio */
export const threshold = (ratio) => `${Number((100 * ratio).toFixed(2))}%`;

/** The point estimate: the mean, or the median where the document has one. @param {Interval | Range} of */
export const pointEstimate = (of) => ("median" in of ? of.median : of.mean);

/** "[63.0, 79.1]" @param {Interval | Range} of */
export const bounds = (of) => `[${hundredths(of.lower)},${NBSP}${hundredths(of.upper)}]`;

/** "71.2% [63.0, 79.1]" @param {Interval | Range} of */
export const interval = (of) => `${percent(pointEstimate(of))} ${bounds(of)}`;

/** "+12.3 pts": percentage points. @param {number} ratio */
export const points = (ratio) => `${ratio < 0 ? "−" : "+"}${hundredths(Math.abs(ratio))}${NBSP}pts`;

/** @param {number} number */
export const count = (number) => COUNT.format(Math.round(number));

/** "1.28M" @param {number} number */
export const short = (number) => (number < 10_000 ? count(number) : SHORT.format(number));

/** "1 label", "2 labels" @param {number} number @param {string} one @param {string} [many] */
export const pluralize = (number, one, many = `${one}s`) =>
  `${count(number)}${NBSP}${Math.round(number) === 1 ? one : many}`;

/** A number of any unit, such as a cost. @param {number} number */
export const plain = (number) => Number(number.toPrecision(3)).toString();

/** "2 h": the largest unit that fits, and the next smaller one if it matters. @param {number} seconds */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const index = UNITS.findIndex(([, size]) => whole >= size);
  if (index < 0) return `0${NBSP}s`;
  const [unit, size] = UNITS[index];
  const value = Math.floor(whole / size);
  const text = `${value}${NBSP}${unit}`;
  if (value >= 4 || size < 3600) return text;
  const [lesser, lesserSize] = UNITS[index + 1];
  const rest = Math.floor((whole % size) / lesserSize);
  return rest ? `${text}${NBSP}${rest}${NBSP}${lesser}` : text;
}

let offset = 0;

/** Follows the server's clock where this machine's is well off. @param {number} seconds the server's time */
export function setClock(seconds) {
  const difference = seconds - Date.now() / 1000;
  offset = Math.abs(difference) > 3 ? difference : 0;
}

/** Seconds since the epoch by the clock of the server. */
export const now = () => Date.now() / 1000 + offset;

/** @param {number} seconds since the epoch */
export const moment = (seconds) => MOMENT.format(new Date(seconds * 1000));

/** "3 s ago", kept current by `tickTimes`. @param {number} seconds @param {"ago" | "since" | "until"} [form] */
export function when(seconds, form = "ago") {
  const attributes = { "data-at": seconds, "data-form": form, title: moment(seconds) };
  return h("time", { ...attributes, datetime: new Date(seconds * 1000).toISOString() }, relative(seconds, form));
}

/** @param {number} at @param {string} form */
function relative(at, form) {
  if (form === "until") return `in ${duration(at - now())}`;
  return duration(now() - at) + (form === "ago" ? " ago" : "");
}

/** Brings all times shown up to date. */
export function tickTimes() {
  for (const time of document.querySelectorAll("time[data-at]")) {
    const text = relative(Number(time.getAttribute("data-at")), time.getAttribute("data-form") ?? "ago");
    if (time.textContent !== text) time.textContent = text;
  }
}
