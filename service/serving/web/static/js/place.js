/** Where the reader is: kept in the address, so that every view can be linked to. */

/**
 * @typedef {object} Place
 * @property {string | null} model
 * @property {string | null} grouping
 * @property {string | null} group the one whose detail is open
 * @property {string | null} sort
 * @property {string | null} order
 * @property {string | null} search
 */

const NAMES = /** @type {const} */ (["model", "grouping", "group", "sort", "order", "search"]);

/** @returns {Place} */
export function readPlace() {
  const query = new URLSearchParams(location.search);
  return /** @type {Place} */ (Object.fromEntries(NAMES.map((name) => [name, query.get(name) || null])));
}

/** The address of a place. @param {Partial<Place>} place */
export function address(place) {
  const query = new URLSearchParams();
  for (const name of NAMES) if (place[name]) query.set(name, /** @type {string} */ (place[name]));
  const text = query.toString();
  return text ? `/?${text}` : "/";
}

/** @param {Place} place @param {boolean} remember whether Back returns to the place before */
export function writePlace(place, remember) {
  if (address(place) === location.pathname + location.search) return;
  if (remember) history.pushState(null, "", address(place));
  else history.replaceState(null, "", address(place));
}

/** Handler of a link that changes the place; clicks that open a tab of their own stay with the browser.
 * @param {() => void} go */
export const follow = (go) => (/** @type {MouseEvent} */ event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button) return;
  event.preventDefault();
  event.stopPropagation();
  go();
};
