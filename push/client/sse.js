// Reads a stream of Server-Sent Events with fetch, which unlike EventSource can
// send an Authorization header, and keeps reading: it comes back after any
// interruption with the id of the last message and goes on there.

/**
 * @typedef {{id: string, event: string, data: any}} Message
 * `data` is parsed JSON, or the text if it is none.
 *
 * @param {object} o
 * @param {string} o.url
 * @param {object | (() => object | Promise<object>)} [o.headers] a function is asked before every attempt
 * @param {(m: Message) => void} o.onEvent
 * @param {(kind: "ready" | "reset") => void} [o.onReset] load a snapshot now and merge by sequence:
 *   "ready" at the beginning, "reset" when messages are missing
 * @param {(state: "connecting" | "open" | "waiting" | "closed") => void} [o.onState]
 * @param {AbortSignal} [o.signal] ends it
 * @param {string} [o.lastEventId] where an earlier stream ended
 * @param {number} [o.silence] milliseconds without a byte after which the connection counts as dead
 * @param {number} [o.maxDelay] the longest wait between attempts, in milliseconds
 * @returns {Promise<void>} resolves when the signal aborts, rejects when the server refuses for good
 */
export async function subscribe(o) {
  const s = { ...defaults, ...o, lastId: o.lastEventId ?? "", retry: 1000, failures: 0, seen: new Recent(1024) };
  const stopped = () => s.signal?.aborted ?? false;
  try {
    while (!stopped()) {
      s.onState("connecting");
      let wait = 0;
      try {
        wait = await connect(s);
      } catch (err) {
        if (err instanceof Refused) throw err;
      }
      if (stopped()) break;
      s.onState("waiting");
      await sleep(Math.max(wait, delay(s)), s.signal);
    }
  } finally {
    s.onState("closed");
  }
}

const defaults = { headers: {}, onReset() {}, onState() {}, silence: 45_000, maxDelay: 30_000 };

/** The server will give the same answer next time. */
export class Refused extends Error {
  /** @param {number} status */
  constructor(status) {
    super(`stream refused with status ${status}`);
    this.status = status;
  }
}

// connect reads one connection to its end and returns how long the server asked
// to wait at least, in milliseconds.
async function connect(s) {
  const attempt = new AbortController();
  const abort = () => attempt.abort();
  s.signal?.addEventListener("abort", abort);
  let watchdog = setTimeout(abort, s.silence);
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(abort, s.silence);
  };
  try {
    s.failures++;
    const own = typeof s.headers === "function" ? await s.headers() : s.headers;
    const headers = { Accept: "text/event-stream", ...own };
    if (s.lastId) headers["Last-Event-ID"] = s.lastId;
    const res = await fetch(s.url, { headers, signal: attempt.signal, cache: "no-store" });
    if (!res.ok) return refusal(res);
    s.onState("open");
    await read(s, res.body, alive);
    return 0;
  } finally {
    clearTimeout(watchdog);
    s.signal?.removeEventListener("abort", abort);
    attempt.abort(); // an answer that was not read to its end holds a connection
  }
}

function refusal(res) {
  const passing = res.status >= 500 || res.status === 429 || res.status === 408;
  if (!passing) throw new Refused(res.status);
  return 1000 * (Number(res.headers.get("Retry-After")) || 0);
}

async function read(s, body, alive) {
  const parser = new Parser((message) => take(s, message), (ms) => (s.retry = ms));
  parser.lastId = s.lastId;
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    s.failures = 0;
    parser.push(decoder.decode(value, { stream: true }));
    s.lastId = parser.lastId;
  }
}

function take(s, message) {
  s.lastId = message.id;
  try {
    if (message.event === "ready" || message.event === "reset") {
      s.onReset(message.event);
      return;
    }
    const data = parse(message.data);
    if (data?.id && !s.seen.add(`${message.event} ${data.id}`)) return;
    s.onEvent({ id: message.id, event: message.event, data });
  } catch (err) {
    // The page's fault must not end the stream, nor stay hidden.
    queueMicrotask(() => { throw err; });
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A set of the last `limit` strings. */
class Recent {
  constructor(limit) {
    this.limit = limit;
    this.set = new Set();
  }
  add(key) {
    if (this.set.has(key)) return false;
    this.set.add(key);
    if (this.set.size > this.limit) this.set.delete(this.set.values().next().value);
    return true;
  }
}

// delay grows with failures in a row and is spread, so that clients which lost
// one server do not come back together.
function delay(s) {
  const most = Math.min(s.retry * 2 ** Math.max(0, s.failures - 1), s.maxDelay);
  return most * (0.5 + Math.random() / 2);
}

function sleep(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
    if (signal?.aborted) done();
  });
}

/** Parses an event stream as the HTML standard says, in pieces of any size. */
export class Parser {
  constructor(onMessage, onRetry = () => {}) {
    Object.assign(this, { onMessage, onRetry, rest: "", lastId: "", first: true });
    this.clear();
  }
  clear() {
    this.event = "";
    this.data = [];
    this.id = undefined;
  }
  push(text) {
    if (this.first && text) {
      this.first = false;
      if (text[0] === "\ufeff") text = text.slice(1);
    }
    this.rest += text;
    const lines = this.rest.split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    for (const line of lines) this.line(line);
  }
  line(line) {
    if (line === "") return this.dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.event = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id" && !value.includes("\0")) this.id = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.onRetry(Number(value));
  }
  dispatch() {
    const { event, data, id } = this;
    this.clear();
    if (id !== undefined) this.lastId = id;
    if (data.length > 0) this.onMessage({ id: this.lastId, event: event || "message", data: data.join("\n") });
  }
}
