/** What is on the table: the items shown, what was said of them, and what was said before. */

import { change } from "./api.js";
import { imagesOf } from "./images.js";
import { recall, remember } from "./memory.js";
import { spokenPayload } from "./payload.js";

export const GRID = 12;
const AHEAD = 5;
const REMEMBERED = 20;

/**
 * @typedef {import("./items.js").Item & {model: string, request_id: string, claim_id: string}} Item
 * @typedef {import("./outbox.js").Answer} Answer
 */

export class Work {
  /** @type {Item[]} */
  items = [];
  current = 0;
  /** The items labelled last, the newest at the end. @type {Item[]} */
  history = [];
  /** What is shown again, to be changed. @type {Item | null} */
  revised = null;
  /** @type {{answered: number, skipped: number, models: Record<string, number>}} `models` has the answers of each */
  counts = { answered: 0, skipped: 0, models: {} };
  isGrid = false;
  /** @type {string[]} */
  origins = [];

  /**
   * @param {import("./desk.js").Desk} desk @param {import("./outbox.js").Outbox} outbox
   * @param {{changed: () => void, say: (words: string) => void, warn: (words: string) => void}} events
   */
  constructor(desk, outbox, events) {
    this.desk = desk;
    this.outbox = outbox;
    this.events = events;
  }

  /** @param {string[]} origins of images that may be shown */
  open(origins) {
    this.origins = origins;
    this.counts = recall("counts", { answered: 0, skipped: 0, models: {} });
    this.history = recall("history", []);
    this.#useGrid(recall("grid", false));
  }

  /** @param {boolean} isGrid */
  #useGrid(isGrid) {
    this.isGrid = isGrid;
    this.desk.wanted = isGrid ? 2 * GRID : AHEAD;
  }

  /** The item that a class is chosen for. @returns {Item | null} */
  get shown() {
    return this.revised ?? this.items[this.current] ?? null;
  }

  get isGridShown() {
    return this.isGrid && !this.revised && this.items.length > 0 && this.hasImage(this.items[0].request);
  }

  /** @param {any} request */
  hasImage(request) {
    return imagesOf(request, this.origins).length > 0;
  }

  /** @param {boolean} isGrid */
  setGrid(isGrid) {
    this.#useGrid(isGrid);
    remember("grid", isGrid);
    this.items = [];
    this.fill();
    this.desk.topUp();
  }

  /** Puts claims on the table if everything there is done; a grid that was not begun is filled up. */
  fill() {
    const isBegun = this.items.some((item) => item.kind !== null);
    const isOpen = this.items.some((item) => item.kind === null);
    if (isOpen && (isBegun || !this.isGridShown || this.items.length >= GRID)) return;
    if (!isOpen) {
      this.items = [];
      this.current = 0;
    }
    const first = this.items[0] ?? this.desk.claims[0];
    if (!first) return;
    const isGrid = this.isGrid && this.hasImage(first.request);
    const shown = new Set(this.items.map((item) => item.request_id));
    const fitting = this.desk.claims.filter(
      (one) => !shown.has(one.request_id) && (isGrid ? one.model === first.model && this.hasImage(one.request) : one === first),
    );
    for (const { model, request_id, claim_id, request } of fitting.slice(0, (isGrid ? GRID : 1) - this.items.length)) {
      this.items.push({ model, request_id, claim_id, request, kind: null, true_class: "" });
    }
  }

  /** @param {string} name of the class */
  choose(name) {
    const item = this.shown;
    if (!item?.request.classes.includes(name)) return;
    if (item.kind === "answer" && item.true_class === name) return this.keep();
    const body = { true_class: name };
    if (item.kind === null) this.#push(item, "answer", { claim_id: item.claim_id, ...body });
    else this.#push(item, "correction", { item_id: item.request.item_id, ...body });
    this.#settle(item, "answer", name, `${item.request.item_id}: ${name}.`);
  }

  /** Skips the item; if it was labelled, the label is taken back. */
  skip() {
    const item = this.shown;
    if (!item) return;
    if (item.kind === null) {
      this.#push(item, "skip", { claim_id: item.claim_id });
      this.#settle(item, "skip", "", `${item.request.item_id}: skipped.`);
    } else if (item.kind === "answer") {
      this.#push(item, "retraction", { item_id: item.request.item_id });
      this.#settle(item, "retraction", "", `${item.request.item_id}: label taken back.`);
    } else {
      this.keep();
    }
  }

  /** Shows the last item again, or the one before the one that is shown again. */
  undo() {
    const at = this.revised ? this.history.indexOf(this.revised) : this.history.length;
    if (at <= 0) return this.events.say("There is nothing to undo.");
    this.revised = this.history[at - 1];
    this.events.say(`${this.revised.request.item_id} again: you can change what you said.`);
    this.events.changed();
  }

  /** Back to where one was, without a change. */
  keep() {
    if (!this.revised) return;
    this.revised = null;
    this.#sayNext("Kept.");
    this.events.changed();
  }

  /** @param {number} index of an item in the grid */
  select(index) {
    this.current = Math.max(0, Math.min(this.items.length - 1, index));
    this.events.changed();
  }

  /** @param {Item} item @param {Answer["verb"]} verb @param {Record<string, string>} body */
  #push(item, verb, body) {
    this.outbox.push({ verb, model: item.model, request_id: item.request_id, body });
  }

  /** @param {Item} item @param {Item["kind"]} kind @param {string} name @param {string} words */
  #settle(item, kind, name, words) {
    this.#count(item, item.kind, -1);
    this.#count(item, kind, 1);
    item.kind = kind;
    item.true_class = name;
    // What was read from the tab's memory is another object than the one in a grid.
    for (const shown of this.items) if (shown.request_id === item.request_id) Object.assign(shown, item);
    if (!this.history.some((one) => one.request_id === item.request_id)) this.history.push(item);
    this.history = this.history.slice(-REMEMBERED);
    remember("history", this.history);
    this.desk.remove(item.request_id);
    if (this.revised) this.revised = null;
    else this.#advance();
    this.fill();
    this.#sayNext(words);
    this.events.changed();
  }

  #advance() {
    const { length } = this.items;
    for (let step = 1; step <= length; step += 1) {
      const at = (this.current + step) % length;
      if (this.items[at].kind === null) {
        this.current = at;
        return;
      }
    }
  }

  /** @param {string} words */
  #sayNext(words) {
    const next = this.shown;
    const what = next ? `Next: ${next.request.item_id}. ${spokenPayload(next.request)}` : "No further request is there.";
    this.events.say(`${words} ${what}`);
  }

  /** @param {Item} item @param {Item["kind"]} kind @param {number} more */
  #count({ model }, kind, more) {
    if (kind === "answer") {
      this.counts.answered += more;
      this.counts.models[model] = (this.counts.models[model] ?? 0) + more;
    }
    if (kind === "skip") this.counts.skipped += more;
    remember("counts", this.counts);
  }

  /** A claim has ended. @param {{request_id: string, request: any}} claim */
  lost(claim) {
    const at = this.items.findIndex((item) => item.request_id === claim.request_id && item.kind === null);
    if (at < 0) return;
    this.items.splice(at, 1);
    this.current = Math.max(0, Math.min(this.current, this.items.length - 1));
    this.events.warn(`The time to label ${claim.request.item_id} has ended. Others can label it now.`);
    this.fill();
  }

  /** @param {Answer} answer @param {any} error */
  refused(answer, error) {
    const item = this.history.find((one) => one.request_id === answer.request_id);
    const name = item?.request.item_id ?? answer.request_id;
    this.events.warn(`Your answer about ${name} was refused: ${error.message}.`);
    if (error.word === "same-annotator") {
      // Somebody else has to answer it: the sooner it is free, the better. It becomes free by itself, too.
      change(answer, "release", { claim_id: answer.body.claim_id }).catch(() => {});
    }
    if (item && (answer.verb === "answer" || answer.verb === "skip")) {
      this.#count(item, item.kind, -1);
      this.history = this.history.filter((one) => one !== item);
      remember("history", this.history);
    }
    this.events.changed();
  }
}
