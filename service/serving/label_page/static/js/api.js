/** Calls of the vendor API, in the session of whoever has logged in. */

import { setClock } from "./format.js";

const API = "/vendor/v1";
/** Types of all answers of Credence with content; those of a proxy, such as HTML, say nothing about the call. */
const OWN_TYPES = ["application/json", "application/problem+json"];
const TIMEOUT_MS = 15_000;

let sessionId = "";

/** Has calls name the session that they are made in: another tab may log in as somebody else. @param {string} id */
export function useSession(id) {
  sessionId = id;
}

/** The call was refused. `word` is the problem's type, such as `claim-lost`; empty if nothing answered. */
export class Refused extends Error {
  /** @param {string} word @param {number} status @param {string} detail @param {number} retrySeconds */
  constructor(word, status, detail, retrySeconds) {
    super(detail);
    this.word = word;
    this.status = status;
    this.retrySeconds = retrySeconds;
  }

  /** Whether the same call may succeed later. */
  get isTemporary() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/**
 * @param {string} method @param {string} path @param {any} [body]
 * @param {{signal?: AbortSignal, seconds?: number}} [options] `seconds` that the server may wait
 * @returns {Promise<any>}
 */
async function call(method, path, body, { signal, seconds = 0 } = {}) {
  const timeout = AbortSignal.timeout(TIMEOUT_MS + 1000 * seconds);
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = /** @type {Record<string, string>} */ ({});
  if (text !== undefined) headers["Content-Type"] = "application/json";
  if (sessionId && path.startsWith(API)) headers["Credence-Session"] = sessionId;
  let reply;
  try {
    reply = await fetch(path, {
      method,
      body: text,
      headers,
      cache: "no-store",
      // An answer is sent although the page is closed.
      keepalive: method === "POST" && !seconds,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused("", 0, "Credence does not answer", 3);
  }
  const date = Date.parse(reply.headers.get("Date") ?? "");
  if (!Number.isNaN(date)) setClock(date / 1000 + 0.5);
  if (reply.status === 204) return null;
  const wait = Number(reply.headers.get("Retry-After")) || 3;
  const content = await contentOf(reply, wait);
  if (reply.ok) return content;
  const word = String(content.type ?? "").replace("urn:credence:problem:", "");
  throw new Refused(word, reply.status, content.detail ?? `status ${reply.status}`, wait);
}

/** @param {Response} reply @param {number} wait seconds until the next try @returns {Promise<any>} */
async function contentOf(reply, wait) {
  const [type] = (reply.headers.get("Content-Type") ?? "").split(";");
  if (OWN_TYPES.includes(type.trim().toLowerCase())) {
    try {
      return await reply.json();
    } catch {
      // Cut off on its way.
    }
  }
  throw new Refused("", 0, `Something other than Credence answered, with status ${reply.status}`, wait);
}

/** @param {string} token @param {string} annotator */
export const logIn = (token, annotator) => call("POST", "/label/login", annotator ? { token, annotator } : { token });
export const logOut = () => call("POST", "/label/logout");
/** The session; null if there is none. */
export const readSession = () => call("GET", "/label/session");
export const readModels = async () => (await call("GET", `${API}/models`)).models;
export const readClaims = async () => (await call("GET", `${API}/claims`)).claims;

/** Claims requests, or waits for one. @param {string | null} model of one model, or of all @param {number} most
 * @param {number} seconds to wait @param {AbortSignal} signal */
export async function claim(model, most, seconds, signal) {
  const body = { most, wait_seconds: seconds, ...(model ? { models: [model] } : {}) };
  return (await call("POST", `${API}/claims`, body, { signal, seconds })).claims;
}

/** @param {any} of a claim @param {string} verb @param {Record<string, string>} body */
export function change(of, verb, body) {
  const path = `/models/${encodeURIComponent(of.model)}/requests/${encodeURIComponent(of.request_id)}/${verb}`;
  return call("POST", API + path, body);
}
