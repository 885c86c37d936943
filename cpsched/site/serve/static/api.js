// The server's answers. A token, where the server asks for one, is kept for this tab only.

const KEPT = "cpsched-token";

/** An answer that is an error, in the server's words; `status` 0: there was no answer. */
export class Refusal extends Error {
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export const keepToken = (token) => sessionStorage.setItem(KEPT, token);

export function credentials() {
  const token = sessionStorage.getItem(KEPT);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** Ask the server; return what it answered, or throw a `Refusal`. */
export async function ask(path, { signal, headers = {}, ...options } = {}) {
  let reply;
  try {
    reply = await fetch(path, { cache: "no-store", signal, ...options, headers: { ...credentials(), ...headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "the server does not answer");
  }
  if (!reply.ok) throw await refusalOf(reply);
  return reply;
}

export const get = async (path, options) => (await ask(path, options)).json();

export const post = async (path, body, options) => (await ask(path, {
  ...options, method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
})).json();

async function refusalOf(reply) {
  let words = reply.statusText || `status ${reply.status}`;
  try {
    const problem = await reply.json();
    const faults = (problem.faults ?? []).map(({ path, message }) => (path ? `${path}: ${message}` : message));
    words = [problem.detail ?? words, ...faults].join("\n");
  } catch { /* not a problem document: its status says it */ }
  return new Refusal(reply.status, words, Number(reply.headers.get("Retry-After")) || null);
}
