/** Which texts of a payload are images that may be shown. Payloads come from outside: nothing else is loaded. */

const INLINE = /^data:image\/(?:png|jpeg|webp);base64,[A-Za-z0-9+/]+={0,2}$/;
const MOST_CHARACTERS = 4_000_000;
const IMAGE_NAME = /\.(?:png|jpe?g|webp|gif|avif|bmp|svg)$/i;
const OTHER_NAME = /\.(?:pdf|txt|csv|json|xml|html?|mp[34]|wav|ogg|flac|webm|mov|zip)$/i;

/** An address of the web; null for all others, such as `javascript:`. @param {unknown} text */
export function webAddress(text) {
  if (typeof text !== "string" || text.length > 2048 || !/^https?:\/\//i.test(text)) return null;
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** What an `img` may load, or null. @param {unknown} text @param {string[]} origins that are allowed
 * @param {boolean} isUri whether it is the request's URI, which need not be named like an image */
export function imageSource(text, origins, isUri = false) {
  if (typeof text !== "string") return null;
  if (text.startsWith("data:")) return text.length <= MOST_CHARACTERS && INLINE.test(text) ? text : null;
  const address = webAddress(text);
  if (!address || !origins.includes(address.origin)) return null;
  const isImage = IMAGE_NAME.test(address.pathname) || (isUri && !OTHER_NAME.test(address.pathname));
  return isImage ? address.href : null;
}

const MOST_IMAGES = 4;

/** The images of a request: its URI, its payload, or values at the top of its payload.
 * @param {any} request @param {string[]} origins @returns {string[]} */
export function imagesOf(request, origins) {
  if (request.payload_uri) return [imageSource(request.payload_uri, origins, true)].filter((one) => one !== null);
  const { payload } = request;
  const values = payload !== null && typeof payload === "object" ? Object.values(payload) : [payload];
  const found = values.slice(0, 100).map((value) => imageSource(value, origins));
  return found.filter((one) => one !== null).slice(0, MOST_IMAGES);
}
