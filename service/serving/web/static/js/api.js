/** The HTTP API. Answers are kept with their tags, so that what did not change is not sent again. */

import { setClock } from "./format.js";

const KEPT = 200;
const TIMEOUT_MS = 15_000;

/** @type {Map<string, {tag: string | null, body: any}>} */
const answers = new Map();

/** The server said that there is no such thing. */
export class Missing extends Error {}

/** @param {string} path @param {Record<string, string | number | null | undefined>} [query] @returns {Promise<any>} */
export async function get(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const url = `/api/v1${path}${search ? `?${search}` : ""}`;
  const known = answers.get(url);
  const reply = await fetch(url, {
    headers: known?.tag ? { "If-None-Match": known.tag } : {},
    // The tags are minded here; the browser's own cache would hide what did not change.
    cache: "no-store",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const date = Date.parse(reply.headers.get("Date") ?? "");
  if (!Number.isNaN(date)) setClock(date / 1000 + 0.5);
  if (reply.status === 304 && known) return keep(url, known);
  const body = await reply.json();
  if (reply.status === 404) throw new Missing(body.detail ?? "not found");
  if (!reply.ok)
    throw new Error(typeof body.detail === "string" ? body.detail : `status ${reply.status}`);
  return keep(url, { tag: reply.headers.get("ETag"), body });
}

/** @param {string} url @param {{tag: string | null, body: any}} answer */
function keep(url, answer) {
  answers.delete(url);
  answers.set(url, answer);
  if (answers.size > KEPT) answers.delete(/** @type {string} */ (answers.keys().next().value));
  return answer.body;
}

/** @param {string} model */
export const modelPath = (model) => `/models/${encodeURIComponent(model)}`;
