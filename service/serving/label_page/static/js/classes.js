/** Classes by key, and by what is typed. */

const NUMBERED = 9;

/** Lower case without accents: "Éclair" is found with "ecl". @param {string} text */
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

/** Whether every class is one letter or digit, which is then its key. @param {string[]} classes */
function areKeys(classes) {
  return new Set(classes.map(plain)).size === classes.length && classes.every((name) => /^[a-z0-9]$/i.test(name));
}

/** Whether the classes are too many to be all buttons with a key. @param {string[]} classes */
export const areMany = (classes) => classes.length > NUMBERED && !areKeys(classes);

/** The key of each class that has one, by class. Numbers are not keys where they may begin the name of one of many
 * classes. @param {string[]} classes @returns {Map<string, string>} */
export function keysOf(classes) {
  if (areKeys(classes)) return new Map(classes.map((name) => [name, plain(name)]));
  if (classes.length > NUMBERED && classes.some((name) => /\d/.test(name))) return new Map();
  return new Map(classes.slice(0, NUMBERED).map((name, index) => [name, String(index + 1)]));
}

/** @type {WeakMap<string[], string[]>} */
const plainNames = new WeakMap();

/** Classes that contain what is typed: first those that begin with it, then those with a word that does.
 * @param {string[]} classes @param {string} query */
export function matches(classes, query) {
  const wanted = plain(query.trim());
  if (!wanted) return classes;
  let names = plainNames.get(classes);
  if (!names) plainNames.set(classes, (names = classes.map(plain)));
  /** @type {string[][]} */
  const ranked = [[], [], []];
  for (const [index, name] of names.entries()) {
    const at = name.indexOf(wanted);
    if (at < 0) continue;
    const isWord = at > 0 && names[index].split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(wanted));
    ranked[at === 0 ? 0 : isWord ? 1 : 2].push(classes[index]);
  }
  return ranked.flat();
}
