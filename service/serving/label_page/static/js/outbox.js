/** Answers on their way: sent one by one, in their order, and again until they were accepted or refused. */

import { change } from "./api.js";
import { recall, remember } from "./memory.js";

/**
 * @typedef {object} Answer
 * @property {"answer" | "skip" | "correction" | "retraction"} verb
 * @property {string} model
 * @property {string} request_id
 * @property {Record<string, string>} body
 */

export class Outbox {
  /** @type {Answer[]} */
  answers = [];
  isBlocked = false;
  #isSending = false;

  /** @param {{changed: () => void, refused: (answer: Answer, error: any) => void, loggedOut: () => void}} events */
  constructor(events) {
    this.events = events;
  }

  /** Goes on with what was left when the page was closed. */
  open() {
    this.answers = recall("outbox", []);
    this.send();
  }

  /** @param {Answer} answer */
  push(answer) {
    this.answers.push(answer);
    remember("outbox", this.answers);
    this.send();
  }

  /** Resolves when all were sent, or cannot be sent now. */
  async send() {
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.answers.length && (await this.#sendFirst()));
    this.#isSending = false;
  }

  /** Whether to go on at once. */
  async #sendFirst() {
    const [answer] = this.answers;
    try {
      await change(answer, answer.verb, answer.body);
    } catch (error) {
      const refused = /** @type {import("./api.js").Refused} */ (error);
      if (refused.status === 401) {
        this.events.loggedOut();
        return false;
      }
      if (refused.isTemporary) {
        this.isBlocked = true;
        this.events.changed();
        await new Promise((resolve) => setTimeout(resolve, 1000 * refused.retrySeconds));
        return true;
      }
      this.#drop();
      this.events.refused(answer, refused);
      return true;
    }
    this.#drop();
    this.events.changed();
    return true;
  }

  #drop() {
    this.isBlocked = false;
    this.answers.shift();
    remember("outbox", this.answers);
  }

  /** @param {string} requestId */
  has(requestId) {
    return this.answers.some((answer) => answer.request_id === requestId);
  }
}
