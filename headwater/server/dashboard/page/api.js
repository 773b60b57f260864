// Requests to the server. Every answer is JSON or text; every failure is an `ApiError` with a text for people.

import { parse } from "./exact.js";

const TOKEN = "headwater.token";

export class ApiError extends Error {
  /** `status` 0: the server did not answer at all. `retryAfter`: seconds, if the server said so. */
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** What is known of the server. `state`: "ok", "gone" (no answer since `since`) or "token" (it wants one). */
export const connection = { state: "ok", since: 0, wrongToken: false };
const listeners = new Set();

export function onConnection(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function setConnection(state, wrongToken = false) {
  if (state === connection.state && wrongToken === connection.wrongToken) return;
  Object.assign(connection, { state, wrongToken, since: Date.now() });
  listeners.forEach((listener) => listener());
}

/** Kept for this browser tab only. */
export function setToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
  setConnection("ok");
}

/** Percent-encode the parts of a path: names of jobs, operators and keys may hold anything. */
export const path = (strings, ...parts) => String.raw({ raw: strings }, ...parts.map(encodeURIComponent));

/** `exact`: numbers that JavaScript would change stay as they are; show them with `text` of exact.js. */
export const get = (url, options) => request("GET", url, options);
export const post = (url, body) => request("POST", url, { body });
export const patch = (url, body) => request("PATCH", url, { body });
export const remove = (url) => request("DELETE", url);

async function request(method, url, { body, signal, exact = false } = {}) {
  const headers = {};
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  const isForm = body instanceof FormData;
  if (body !== undefined && !isForm) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(new URL(url, document.baseURI), {
      method,
      headers,
      signal,
      cache: "no-store",
      body: isForm ? body : body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    setConnection("gone");
    throw new ApiError(0, "The server does not answer.");
  }
  const text = await response.text();
  const refused = response.status === 401 || (response.status === 403 && token);
  if (!refused) setConnection("ok");
  else if (token === sessionStorage.getItem(TOKEN)) setConnection("token", Boolean(token)); // else: a new one was entered
  if (!response.ok) throw new ApiError(response.status, errorText(response, text), response.headers.get("Retry-After"));
  const isJson = (response.headers.get("Content-Type") || "").includes("json");
  if (!isJson) return text;
  return exact ? parse(text) : JSON.parse(text);
}

function errorText(response, text) {
  try {
    const { errors } = JSON.parse(text);
    if (Array.isArray(errors) && errors.length) return errors.join("\n");
  } catch {
    // not JSON: a proxy may stand between
  }
  return `${response.status} ${response.statusText}`;
}

/**
 * Start something that takes time (a savepoint, a rescale), and wait for its result.
 * `poll(requestId)` gives the path that Flink's answer `{status: {id}, operation}` is read from.
 */
export async function completed({ "request-id": requestId }, poll, { every = 400, isOver = () => false } = {}) {
  while (!isOver()) {
    const { status, operation = {} } = await get(poll(requestId));
    if (status.id === "COMPLETED") {
      const failure = operation["failure-cause"];
      if (failure) throw new ApiError(500, failureText(failure));
      return operation;
    }
    await new Promise((resolve) => setTimeout(resolve, every));
  }
  throw new DOMException("nobody waits any more", "AbortError");
}

function failureText(failure) {
  const trace = failure["stack-trace"] || failure["serialized-throwable"] || "";
  return trace.trim() || failure.class || "It failed without a reason.";
}
