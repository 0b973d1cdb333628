/** What a tab remembers until it is closed or somebody else logs in, so that a reload or a new login loses nothing. */

const KEY = "credence-label";

/** @type {Record<string, any>} */
let content = {};

/** Reads what this tab remembers of somebody; forgets all others. @param {string} person */
export function open(person) {
  try {
    content = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
  } catch {
    content = {};
  }
  if (content.person !== person) content = { person };
}

/** @template T @param {string} name @param {T} otherwise @returns {T} */
export const recall = (name, otherwise) => content[name] ?? otherwise;

/** @param {string} name @param {any} value */
export function remember(name, value) {
  content[name] = value;
  try {
    sessionStorage.setItem(KEY, JSON.stringify(content));
  } catch {
    // The tab's store is full: payloads of earlier items are what is large, and what is needed least.
    const { history, ...rest } = content;
    sessionStorage.setItem(KEY, JSON.stringify(rest));
  }
}

export function forget() {
  content = {};
  sessionStorage.removeItem(KEY);
}
