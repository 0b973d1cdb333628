/** Elements are described again on every update; what the page shows is then changed where it differs, so that
 * focus, scrolling and what is folded open stay. Text is only ever set as text: names come from outside. */

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "oninput", "onchange", "onkeydown", "onsubmit"];

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, unknown>} Attributes attribute by name; `on…` are handlers, `key` distinguishes siblings
 */

/** @param {Element} element @param {Attributes} attributes @param {any[]} children lists among them are laid flat */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element[name] = value;
    else element.setAttribute(name === "key" ? "data-key" : name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** An HTML element. @param {string} tag @param {Attributes} [attributes] @param {...(Child | Child[])} children */
export function h(tag, attributes = {}, ...children) {
  return /** @type {HTMLElement} */ (fill(document.createElement(tag), attributes, children));
}

/** An SVG element. @param {string} tag @param {Attributes} [attributes] @param {...(Child | Child[])} children */
export function s(tag, attributes = {}, ...children) {
  return /** @type {SVGElement} */ (fill(document.createElementNS(SVG, tag), attributes, children));
}

/** Makes the children of an element what is wanted. @param {Element} parent @param {Array<Child | Child[]>} wanted */
export function update(parent, ...wanted) {
  const holder = fill(document.createElement("div"), {}, wanted);
  const focused = document.activeElement;
  patchChildren(parent, [...holder.childNodes]);
  // A row that moved has lost the focus on its way.
  if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected) {
    focused.focus({ preventScroll: true });
  }
}

/** Keeps what has the focus, if it is in view, where the reader sees it while the page is drawn. A browser keeps
 * what is at the top in place, not what grows or shrinks between there and the focus.
 * @param {() => void} draw */
export function keepInPlace(draw) {
  const held = document.activeElement ?? document.body;
  const before = held.getBoundingClientRect().top;
  draw();
  if (held === document.body || !held.isConnected || before < 0 || before > innerHeight) return;
  const moved = held.getBoundingClientRect().top - before;
  if (moved) scrollBy({ top: moved, behavior: "instant" });
}

/** @param {Node} node */
function keyOf(node) {
  return node instanceof Element ? node.getAttribute("data-key") : null;
}

/** @param {Node} a @param {Node} b */
function isSameElement(a, b) {
  return a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

/** @param {Element} parent @param {Node[]} wanted */
function patchChildren(parent, wanted) {
  const keyed = new Map();
  for (const child of parent.children) if (keyOf(child) !== null) keyed.set(keyOf(child), child);
  let cursor = parent.firstChild;
  for (const node of wanted) {
    const key = keyOf(node);
    const match = key === null ? cursor : keyed.get(key);
    if (!match || !isSameElement(match, node)) {
      parent.insertBefore(node, cursor);
    } else {
      if (match === cursor) cursor = match.nextSibling;
      else parent.insertBefore(match, cursor);
      patch(match, node);
    }
  }
  while (cursor) {
    const next = cursor.nextSibling;
    cursor.remove();
    cursor = next;
  }
}

/** @param {Node} old @param {Node} node */
function patch(old, node) {
  if (!(old instanceof Element) || !(node instanceof Element)) {
    if (old.nodeValue !== node.nodeValue) old.nodeValue = node.nodeValue;
    return;
  }
  for (const { name, value } of node.attributes) {
    if (old.getAttribute(name) !== value && !isOwn(old, name)) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!node.hasAttribute(name) && !isOwn(old, name)) old.removeAttribute(name);
  }
  // A slider that was moved minds its attribute no more.
  if (old instanceof HTMLInputElement && old.type === "range") old.value = node.getAttribute("value") ?? "";
  for (const name of HANDLERS) if (old[name] !== node[name]) old[name] = node[name];
  patchChildren(old, [...node.childNodes]);
}

/** What the user changed is theirs. @param {Element} element @param {string} attribute */
function isOwn(element, attribute) {
  return attribute === "open" && element instanceof HTMLDetailsElement;
}
