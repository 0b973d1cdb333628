/** What a tab remembers until it is closed or its person logs out, so that a reload or a new login loses nothing. */

const PREFIX = "credence-label ";

/** Of whose content; empty if nobody's is open. */
let key = "";
/** @type {Record<string, any>} */
let content = {};

/** Reads what this tab remembers of somebody; of all others, only unsent answers are kept. @param {string} person */
export function open(person) {
  key = PREFIX + person;
  for (const other of Object.keys(sessionStorage)) {
    if (other.startsWith(PREFIX) && other !== key) keepUnsent(other);
  }
  content = read(key);
}

/** @param {string} of a key @returns {Record<string, any>} */
function read(of) {
  try {
    return JSON.parse(sessionStorage.getItem(of) ?? "{}");
  } catch {
    return {};
  }
}

/** They are sent when their own person logs in again. @param {string} other key */
function keepUnsent(other) {
  const { outbox = [] } = read(other);
  if (outbox.length) sessionStorage.setItem(other, JSON.stringify({ outbox }));
  else sessionStorage.removeItem(other);
}

/** @template T @param {string} name @param {T} otherwise @returns {T} */
export const recall = (name, otherwise) => content[name] ?? otherwise;

/** @param {string} name @param {any} value */
export function remember(name, value) {
  if (!key) return;
  content[name] = value;
  try {
    sessionStorage.setItem(key, JSON.stringify(content));
  } catch {
    // The tab's store is full: payloads of earlier items are what is large, and what is needed least.
    const { history, ...rest } = content;
    sessionStorage.setItem(key, JSON.stringify(rest));
  }
}

/** Whether this tab has unsent answers of anybody, which are lost when it is closed. */
export const hasUnsent = () =>
  Object.keys(sessionStorage).some((of) => of.startsWith(PREFIX) && read(of).outbox?.length > 0);

export function forget() {
  sessionStorage.removeItem(key);
  content = {};
  key = "";
}
