/** The claims of this session: some more than are shown, so that the next item is there at once. */

import { change, claim, readClaims } from "./api.js";
import { now } from "./format.js";

const WAIT_SECONDS = 25;

/**
 * @typedef {object} Claim
 * @property {string} claim_id
 * @property {string} model
 * @property {string} request_id
 * @property {string} state
 * @property {string} leased_until
 * @property {any} request
 */

/** @param {Claim} of seconds that the claim lasts */
const remaining = (of) => Date.parse(of.leased_until) / 1000 - now();

export class Desk {
  /** @type {Claim[]} */
  claims = [];
  /** @type {string | null} */
  model = null;
  leaseSeconds = 300;
  mostClaims = 100;
  wanted = 5;
  isWaiting = false;
  trouble = "";
  #isClaiming = false;
  #isRenewing = false;
  #usedAt = now();
  #notBefore = 0;
  /** Aborted while claims are not to be made: before `open`, and after `close`. */
  #stop = new AbortController();
  /** Claims whose lease ends with the request's deadline. @type {Set<string>} */
  #final = new Set();

  /**
   * @param {{changed: () => void, claimed: () => void, lost: (claim: Claim) => void, loggedOut: () => void,
   *   isAnswered: (requestId: string) => boolean}} events
   */
  constructor(events) {
    this.events = events;
    this.#stop.abort();
  }

  /** Whether somebody has done something during the last lease: only then claims are renewed. */
  get isUsed() {
    return now() - this.#usedAt < this.leaseSeconds && !document.hidden;
  }

  /** Somebody is here. */
  use() {
    this.#usedAt = now();
    if (now() >= this.#notBefore) this.topUp();
  }

  /** Finds the claims that the session has already, such as before a reload. */
  async open() {
    const held = await readClaims();
    this.claims = held.filter((/** @type {Claim} */ one) => one.state === "claimed" && !this.events.isAnswered(one.request_id));
    this.#stop = new AbortController();
    this.events.changed();
    this.topUp();
  }

  /** Stops to wait, and lets others have what was not answered, but what is of the model to label. */
  async close() {
    this.#stop.abort();
    const others = this.claims.filter((one) => one.model !== this.model);
    this.claims = this.claims.filter((one) => one.model === this.model);
    await Promise.allSettled(others.map((one) => change(one, "release", { claim_id: one.claim_id })));
  }

  /** @param {string} requestId */
  remove(requestId) {
    this.claims = this.claims.filter((one) => one.request_id !== requestId);
    this.topUp();
  }

  /** Claims more requests if few are left; waits for one if none is left. */
  async topUp() {
    if (this.#isClaiming || this.#stop.signal.aborted || !this.isUsed || this.claims.length > this.wanted / 2) return;
    this.#isClaiming = true;
    const { signal } = this.#stop;
    const most = Math.min(this.mostClaims, this.wanted - this.claims.length);
    const seconds = this.claims.length ? 0 : WAIT_SECONDS;
    let pause = 0;
    this.#setWaiting(seconds > 0);
    try {
      const more = await claim(this.model, most, seconds, signal);
      this.trouble = "";
      const known = new Set(this.claims.map((one) => one.request_id));
      this.claims.push(...more.filter((/** @type {Claim} */ one) => !known.has(one.request_id)));
      // Nothing waits: it is asked again when what is left is done.
      pause = more.length || seconds ? 0 : 5;
      if (more.length) this.events.claimed();
    } catch (error) {
      pause = this.#failed(error, signal);
    }
    this.#isClaiming = false;
    this.#setWaiting(!this.claims.length && !signal.aborted);
    this.events.changed();
    this.#notBefore = now() + pause;
    if (pause) setTimeout(() => this.topUp(), 1000 * pause);
    else this.topUp();
  }

  /** Seconds until the next try. @param {any} error @param {AbortSignal} signal */
  #failed(error, signal) {
    if (signal.aborted) return 0;
    if (error.status === 401) {
      this.#stop.abort();
      this.events.loggedOut();
      return 0;
    }
    this.trouble = error.word === "too-many-waits" ? "" : error.message;
    return error.retrySeconds ?? 3;
  }

  /** @param {boolean} isWaiting */
  #setWaiting(isWaiting) {
    if (this.isWaiting === isWaiting) return;
    this.isWaiting = isWaiting;
    this.events.changed();
  }

  /** Renews claims that end soon, and drops those that have ended; called every second. */
  async tick() {
    const ended = this.claims.filter((one) => remaining(one) <= 0);
    if (ended.length) this.#lose(ended);
    if (this.#isRenewing || !this.isUsed) return;
    const due = this.claims.filter((one) => remaining(one) < this.leaseSeconds / 2 && !this.#final.has(one.claim_id));
    this.#isRenewing = true;
    for (const one of due) await this.#renew(one);
    this.#isRenewing = false;
  }

  /** @param {Claim} of */
  async #renew(of) {
    try {
      const { leased_until: until } = await change(of, "renew", { claim_id: of.claim_id });
      if (until === of.leased_until) this.#final.add(of.claim_id);
      of.leased_until = until;
    } catch (error) {
      const refused = /** @type {import("./api.js").Refused} */ (error);
      if (!refused.isTemporary && refused.status !== 401 && this.claims.includes(of)) this.#lose([of]);
    }
  }

  /** @param {Claim[]} ended */
  #lose(ended) {
    this.claims = this.claims.filter((one) => !ended.includes(one));
    for (const one of ended) this.events.lost(one);
    this.events.changed();
    this.topUp();
  }
}
