// Requests to the server. Every error of the server becomes an ApiError.

import { during } from "./busy.js";

const token = document.querySelector('meta[name="hilander-token"]')?.content ?? "";

export class ApiError extends Error {
  constructor(code, message, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

async function read(response) {
  if (response.ok) return response.json();
  let body = null;
  try {
    body = await response.json();
  } catch {
    // the answer is not JSON: it is from a proxy, or the server is stopping
  }
  const error = body?.error ?? { code: "unreachable", message: `the server answered ${response.status}` };
  throw new ApiError(error.code, error.message, response.status);
}

async function send(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new ApiError("unreachable", "the explorer does not answer; check that it is still running", 0);
  }
  return response;
}

export function query(values) {
  const kept = Object.entries(values).filter(([, v]) => v !== null && v !== undefined && v !== "" && v !== false);
  const text = new URLSearchParams(kept).toString();
  return text ? "?" + text : "";
}

export function get(path, values = {}) {
  return during(send("api/" + path + query(values)).then(read));
}

export function getBytes(path, values = {}) {
  return during(send("api/" + path + query(values)).then((response) => (response.ok ? response.arrayBuffer() : read(response))));
}

export function post(path, body) {
  // With the key, the server recognises a request that is sent twice.
  const client_key = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`.padEnd(12, "0");
  const sent = send("api/" + path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-hilander-token": token },
    body: JSON.stringify({ ...body, client_key }),
  });
  return during(sent.then(read));
}
