// Follows a stream of events and keeps following it: after any interruption it
// comes back with the id of the last message and goes on there. It reads
// Server-Sent Events with fetch, which unlike EventSource can send an
// Authorization header, or a WebSocket.

/**
 * @typedef {{id: string, event: string, data: any}} Message
 * `data` is parsed JSON, or the text if it is none.
 *
 * @param {object} o
 * @param {string} o.url of the stream, for either transport http: or https:
 * @param {"sse" | "websocket"} [o.transport] where a WebSocket cannot be opened the stream is
 *   asked for as Server-Sent Events, which also says why
 * @param {object | (() => object | Promise<object>)} [o.headers] a function is asked before every attempt;
 *   over a WebSocket only a bearer token in Authorization goes along
 * @param {(m: Message) => void} o.onEvent
 * @param {(kind: "ready" | "reset") => void} [o.onReset] load a snapshot now and merge by sequence:
 *   "ready" at the beginning, "reset" when messages are missing
 * @param {(state: "connecting" | "open" | "waiting" | "closed") => void} [o.onState]
 * @param {AbortSignal} [o.signal] ends it
 * @param {string} [o.lastEventId] where an earlier stream ended
 * @param {number} [o.silence] milliseconds without a byte after which the connection counts as dead
 * @param {number} [o.maxDelay] the longest wait between attempts, in milliseconds
 * @returns {Promise<void>} resolves when the signal aborts, rejects with Refused when the server
 *   refuses for good: the key has ended, or opens nothing here
 */
export async function subscribe(o) {
  const s = { ...defaults, ...o, lastId: o.lastEventId ?? "", retry: 1000, failures: 0, seen: new Recent(1024) };
  const stopped = () => s.signal?.aborted ?? false;
  const unwatch = watchNetwork(s);
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
      await nap(s, wait, Math.max(wait, delay(s)));
    }
  } finally {
    unwatch();
    s.onState("closed");
  }
}

const defaults = { transport: "sse", headers: {}, onReset() {}, onState() {}, silence: 45_000, maxDelay: 30_000 };

/** The server will give the same answer next time. */
export class Refused extends Error {
  /** @param {number} status */
  constructor(status) {
    super(`stream refused with status ${status}`);
    this.status = status;
  }
}

// watchNetwork ends a wait when the network is back or somebody looks at the page
// again. A connection from before the network went is given up: it may be of
// another one, and would be dead without saying so.
function watchNetwork(s) {
  let away = false;
  const offline = () => (away = true);
  const online = () => {
    if (away) s.drop?.();
    away = false;
    s.wake?.();
  };
  const page = globalThis.document; // a worker has none, and a server not even the network's events
  const look = () => page.hidden || s.wake?.();
  globalThis.addEventListener?.("offline", offline);
  globalThis.addEventListener?.("online", online);
  page?.addEventListener("visibilitychange", look);
  return () => {
    globalThis.removeEventListener?.("offline", offline);
    globalThis.removeEventListener?.("online", online);
    page?.removeEventListener("visibilitychange", look);
  };
}

// connect reads one connection to its end and returns how long the server asked
// to wait at least, in milliseconds.
async function connect(s) {
  const attempt = new AbortController();
  const abort = () => attempt.abort();
  s.signal?.addEventListener("abort", abort);
  s.drop = abort;
  let watchdog = setTimeout(abort, s.silence);
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(abort, s.silence);
  };
  try {
    s.failures++;
    const own = typeof s.headers === "function" ? await s.headers() : s.headers;
    if (s.transport === "websocket" && (await talk(s, own, attempt.signal, alive))) return 0;
    if (attempt.signal.aborted) return 0;
    return await listen(s, own, attempt.signal, alive);
  } finally {
    clearTimeout(watchdog);
    s.drop = undefined;
    s.signal?.removeEventListener("abort", abort);
    attempt.abort(); // an answer that was not read to its end holds a connection
  }
}

// listen reads an event stream.
async function listen(s, own, signal, alive) {
  const headers = { Accept: "text/event-stream", ...own };
  if (s.lastId) headers["Last-Event-ID"] = s.lastId;
  const res = await fetch(s.url, { headers, signal, cache: "no-store" });
  if (!res.ok) return refusal(res);
  s.onState("open");
  await read(s, res.body, alive);
  return 0;
}

// talk reads a WebSocket to its end. It returns false where none was opened: why,
// a browser tells nobody.
function talk(s, own, signal, alive) {
  return new Promise((resolve) => {
    let ws;
    let opened = signal.aborted;
    const done = () => {
      signal.removeEventListener("abort", done);
      if (ws) {
        ws.onopen = ws.onmessage = ws.onclose = null; // what still comes, the next connection brings
        ws.close();
      }
      resolve(opened);
    };
    if (opened) return done();
    try {
      ws = new WebSocket(address(s), protocols(own));
    } catch {
      return done(); // a key that cannot be a protocol's name
    }
    signal.addEventListener("abort", done);
    ws.onopen = () => {
      opened = true;
      alive();
      s.onState("open");
    };
    ws.onmessage = ({ data }) => {
      alive();
      s.failures = 0;
      if (!hear(s, data)) done();
    };
    ws.onclose = done;
  });
}

function address(s) {
  const url = new URL(s.url, globalThis.location?.href);
  url.protocol = url.protocol.replace("http", "ws");
  if (s.lastId) url.searchParams.set("last_event_id", s.lastId);
  return url;
}

// protocols names what is spoken, and the key: a browser sends no headers with a
// WebSocket.
function protocols(headers) {
  const key = /^bearer +(.+)$/i.exec(new Headers(headers).get("Authorization") ?? "")?.[1];
  return key ? ["waybill.v1", "bearer." + key] : ["waybill.v1"];
}

// hear takes in one message of a WebSocket; false of what is none of the hub's.
function hear(s, text) {
  let m;
  try {
    m = JSON.parse(text);
  } catch {
    return false;
  }
  if (m.retry !== undefined) s.retry = m.retry;
  if (m.id !== undefined) s.lastId = m.id;
  if (m.data !== undefined) take(s, { id: s.lastId, event: m.event ?? "message", data: m.data });
  return true;
}

function refusal(res) {
  const passing = res.status >= 500 || res.status === 429 || res.status === 408;
  if (!passing) throw new Refused(res.status);
  return 1000 * (Number(res.headers.get("Retry-After")) || 0);
}

async function read(s, body, alive) {
  const parser = new Parser((m) => take(s, { ...m, data: parse(m.data) }), (ms) => (s.retry = ms));
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

function take(s, { id, event, data }) {
  s.lastId = id;
  try {
    if (event === "ready" || event === "reset") {
      s.onReset(event);
      return;
    }
    if (data?.id && !s.seen.add(`${event} ${data.id}`)) return;
    s.onEvent({ id, event, data });
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

// nap waits; s.wake shortens that to what the server asked for.
function nap(s, least, most) {
  const begun = Date.now();
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      s.wake = undefined;
      s.signal?.removeEventListener("abort", done);
      resolve();
    };
    let timer = setTimeout(done, most);
    s.wake = () => {
      clearTimeout(timer);
      timer = setTimeout(done, Math.max(0, begun + least - Date.now()));
    };
    s.signal?.addEventListener("abort", done);
    if (s.signal?.aborted) done();
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
