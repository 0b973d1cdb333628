/** Draws the items and the classes. What shows an item is made once, so that its images load once and its text stays
 * where it was scrolled to. */

import { areMany } from "./classes.js";
import { h, update } from "./dom.js";
import { gridView, itemView, markCells, said } from "./items.js";
import { picker, shownOptions } from "./picker.js";

/** @param {string} id */
const part = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const finder = () => /** @type {HTMLInputElement | null} */ (document.getElementById("find"));

export class Screen {
  query = "";
  active = 0;
  #drawn = "";

  /** @param {import("./work.js").Work} work */
  constructor(work) {
    this.work = work;
  }

  /** The option that Enter takes. @returns {string | null} */
  get activeOption() {
    return this.#options[this.active] ?? null;
  }

  get #options() {
    return this.work.shown ? shownOptions(this.#choice(this.work.shown)) : [];
  }

  /** @param {string} text what is to be found */
  find(text) {
    this.query = text;
    this.active = 0;
    const input = finder();
    if (input && input.value !== text) input.value = text;
  }

  /** @param {number} step to another option of the list */
  step(step) {
    this.active = Math.max(0, Math.min(this.#options.length - 1, this.active + step));
    this.drawChoice();
  }

  /** @param {string} key an arrow: to another image of the grid */
  move(key) {
    const cells = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".cell")]);
    const columns = cells.filter((cell) => cell.offsetTop === cells[0].offsetTop).length;
    const to = this.work.current + ({ ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key] ?? 0);
    if (to >= 0 && to < cells.length) this.work.select(to);
  }

  /** @param {string} nothing what to say if no item is there */
  draw(nothing) {
    const { shown, isGridShown, items, current, revised, origins } = this.work;
    const box = part("shown");
    const isChanged = this.#isChanged(shown ? identity(this.work) : `nothing ${nothing}`);
    if (!shown) {
      if (isChanged) box.replaceChildren(h("p", { class: "panel nothing" }, nothing));
    } else if (isGridShown) {
      if (isChanged) box.replaceChildren(gridView(items, origins, (index) => this.work.select(index)));
      const isFocused = Boolean(document.activeElement?.closest(".cell"));
      markCells(box, items, current);
      const cell = /** @type {HTMLElement} */ (box.querySelector("[aria-current]"));
      if (isFocused) cell.focus({ preventScroll: true });
      cell.scrollIntoView({ block: "nearest" });
    } else if (isChanged) {
      box.replaceChildren(itemView(shown, origins, revised !== null));
      scrollTo({ top: 0, behavior: "instant" });
    }
    const hadFinder = finder() !== null;
    this.drawChoice();
    // Where there is a keyboard, one can type at once; on a phone one would open.
    if (!hadFinder && matchMedia("(pointer: fine)").matches) finder()?.focus({ preventScroll: true });
  }

  /** Draws the classes alone. */
  drawChoice() {
    const { shown } = this.work;
    update(part("choice"), shown && picker(this.#choice(shown)), shown && this.#actions(shown), this.#last());
    document.querySelector("#found [aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }

  /** @param {string} drawn */
  #isChanged(drawn) {
    const isChanged = this.#drawn !== drawn;
    this.#drawn = drawn;
    return isChanged;
  }

  /** @param {import("./work.js").Item} item @returns {import("./picker.js").Choice} */
  #choice(item) {
    return {
      classes: item.request.classes,
      query: areMany(item.request.classes) ? this.query : "",
      active: this.active,
      before: item.kind === "answer" ? item.true_class : null,
      choose: (name) => this.work.choose(name),
      type: (text) => {
        this.find(text);
        this.drawChoice();
      },
    };
  }

  /** @param {import("./work.js").Item} item */
  #actions(item) {
    const { work } = this;
    const button = (/** @type {string} */ key, /** @type {string} */ sign, /** @type {string} */ words, /** @type {() => void} */ onclick) =>
      h(
        "button",
        { key, type: "button", class: "button quiet", onclick, disabled: key === "undo" && !work.history.length },
        h("kbd", { "aria-hidden": "true" }, sign),
        words,
      );
    return h(
      "div",
      { key: "actions", class: "actions" },
      button("skip", "−", item.kind === "answer" ? "Take label back" : "Skip", () => work.skip()),
      button("undo", "⌫", "Undo", () => work.undo()),
      work.revised && button("keep", "Esc", "Keep", () => work.keep()),
    );
  }

  #last() {
    const last = this.work.history.at(-1);
    return last ? h("p", { key: "last", class: "last note" }, `Last: ${last.request.item_id}, ${said(last)}`) : null;
  }
}

/** What is shown changes with this. @param {import("./work.js").Work} work */
function identity({ shown, isGridShown, items, revised }) {
  if (isGridShown) return items.map((item) => item.request_id).join(" ");
  return `${shown?.request_id} ${revised ? shown?.kind : ""} ${revised ? shown?.true_class : ""}`;
}
