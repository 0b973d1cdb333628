/** What is to be labelled: text, JSON, images. All of it is shown as text or loaded by `img`, and never run. */

import { h } from "./dom.js";
import { count } from "./format.js";
import { imagesOf, webAddress } from "./images.js";

const MOST_CHARACTERS = 20_000;
const MOST_ROWS = 200;
const MOST_DEPTH = 6;
const MOST_VALUES = 2_000;
const TINY_PIXELS = 160;

/** @param {any} request @param {string[]} origins where images may be loaded from */
export function payloadView(request, origins) {
  const images = imagesOf(request, origins);
  const pictures = images.map((source) => picture(source, request));
  if (request.payload_uri) return [pictures, addressView(request.payload_uri)];
  const { payload } = request;
  if (payload === null || payload === undefined) return h("p", { class: "empty" }, `Item ${request.item_id}: the request has no payload.`);
  if (images.length && typeof payload === "string") return pictures;
  const text = typeof payload === "string" ? textView(payload) : jsonView(payload, images);
  return [pictures, h("div", { class: "content", role: "region", "aria-label": "Payload", tabindex: 0 }, text)];
}

/** The beginning of a payload that is text, to be read aloud. @param {any} request */
export function spokenPayload(request) {
  return typeof request.payload === "string" && !request.payload.startsWith("data:") ? request.payload.slice(0, 300) : "";
}

/** Shows few pixels as large squares. @param {HTMLImageElement} image */
export const markTiny = (image) => image.classList.toggle("tiny", image.naturalWidth < TINY_PIXELS);

/** @param {string} source @param {any} request */
function picture(source, request) {
  const image = h("img", { src: source, alt: `Item ${request.item_id}`, referrerpolicy: "no-referrer", decoding: "async" });
  image.onload = () => markTiny(/** @type {HTMLImageElement} */ (image));
  image.onerror = () => image.parentElement?.classList.add("broken");
  return h("figure", { class: "picture" }, image, h("figcaption", {}, "The image could not be loaded."));
}

/** @param {string} text */
function addressView(text) {
  const address = webAddress(text);
  const shown = clipped(text, 2048);
  if (!address) return h("p", { class: "address" }, shown);
  return h("p", { class: "address" }, h("a", { href: address.href, target: "_blank", rel: "noopener noreferrer" }, shown));
}

/** @param {string} text @param {number} most */
function clipped(text, most) {
  return text.length <= most ? text : `${text.slice(0, most)} … (${count(text.length - most)} more characters)`;
}

/** @param {string} text */
const textView = (text) => h("p", { class: "text" }, clipped(text, MOST_CHARACTERS));

/** @param {any} payload @param {string[]} images that are shown already */
function jsonView(payload, images) {
  let left = MOST_VALUES;

  /** @param {any} value @param {number} depth @returns {any} */
  function view(value, depth) {
    left -= 1;
    if (value === null || typeof value !== "object") {
      if (typeof value !== "string") return h("code", {}, String(value));
      return images.includes(value) && value.startsWith("data:") ? "(shown as an image)" : h("span", { class: "text" }, clipped(value, MOST_CHARACTERS));
    }
    if (depth >= MOST_DEPTH || left <= 0) return h("code", {}, folded(value));
    const entries = Object.entries(value);
    if (!entries.length) return h("code", {}, Array.isArray(value) ? "[]" : "{}");
    const rows = entries.slice(0, MOST_ROWS).map(([name, of]) =>
      h("tr", {}, h("th", { scope: "row" }, clipped(name, 200)), h("td", {}, view(of, depth + 1))),
    );
    const more = entries.length - MOST_ROWS;
    return h("table", { class: "json" }, h("tbody", {}, rows, more > 0 && h("tr", {}, h("td", { colspan: 2 }, `… ${count(more)} more`))));
  }

  return view(payload, 0);
}

/** @param {any} value that is nested too deeply to be a table */
function folded(value) {
  try {
    return clipped(JSON.stringify(value), 500);
  } catch {
    return "… nested too deeply to be shown";
  }
}
