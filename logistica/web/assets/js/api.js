// The HTTP API as the pages use it. Every failure is a Problem (RFC 9457), also
// the network's, so callers have one thing to show.

const patience = 15_000; // ms until a request counts as lost

export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail || body.title || `HTTP ${status}`);
    this.status = status; // 0: no answer at all
    this.type = String(body.type || "");
    this.title = body.title || "";
    this.detail = body.detail || "";
    this.from = body.from || "";
    this.allowed = Array.isArray(body.allowed) ? body.allowed : null;
    this.triesLeft = typeof body.tries_left === "number" ? body.tries_left : null;
    this.errors = (Array.isArray(body.errors) ? body.errors : []).filter((e) => e?.message);
    this.fields = this.errors.map((e) => e.message);
  }

  // at is what was said of a field of the request's body.
  at(field) {
    const of = (e) => e.location === `body.${field}` || e.location?.startsWith(`body.${field}[`);
    return this.errors.find(of)?.message ?? "";
  }
}

export class Api {
  constructor(key = "") {
    this.headers = key ? { Authorization: `Bearer ${key}` } : {};
  }

  me() {
    return this.#send("GET", "/v1/me");
  }

  orders({ state = "", limit = 50, cursor = "" } = {}) {
    const query = new URLSearchParams({ limit: String(limit) });
    if (state) query.set("state", state);
    if (cursor) query.set("cursor", cursor);
    return this.#send("GET", `/v1/orders?${query}`);
  }

  order(id) {
    return this.#send("GET", `/v1/orders/${encodeURIComponent(id)}`);
  }

  // told is an order with how it came to its state.
  told(id) {
    return this.#send("GET", `/v1/orders/${encodeURIComponent(id)}?history=true`);
  }

  position(id) {
    return this.#send("GET", `/v1/orders/${encodeURIComponent(id)}/position`);
  }

  reassign(id) {
    return this.#send("POST", `/v1/orders/${encodeURIComponent(id)}/reassign`);
  }

  resetCode(id) {
    return this.#send("POST", `/v1/orders/${encodeURIComponent(id)}/delivery-code/reset`);
  }

  counts() {
    return this.#send("GET", "/v1/orders/counts");
  }

  create(body, key) {
    return this.#send("POST", "/v1/orders", body, { "Idempotency-Key": key });
  }

  move(id, body, key) {
    return this.#send("POST", `/v1/orders/${encodeURIComponent(id)}/transitions`, body, { "Idempotency-Key": key });
  }

  track(token) {
    return this.#send("GET", `/v1/track/${encodeURIComponent(token)}`);
  }

  // send is for the pages that have calls of their own.
  send(method, url, body) {
    return this.#send(method, url, body);
  }

  async #send(method, url, body, extra) {
    const answer = await this.#ask(method, url, body, extra);
    if (answer.ok && (answer.status === 204 || answer.headers.get("Content-Length") === "0")) return null;
    const text = await answer.text().catch(() => "");
    const value = parse(text);
    if (!answer.ok) throw new Problem(answer.status, value ?? {});
    if (value === undefined) throw new Problem(answer.status, { title: "unreadable answer" });
    return value;
  }

  async #ask(method, url, body, extra) {
    try {
      return await fetch(url, {
        method,
        headers: { Accept: "application/json", ...this.headers, ...extra, ...(body && { "Content-Type": "application/json" }) },
        body: body && JSON.stringify(body),
        cache: "no-store",
        credentials: "omit",
        signal: AbortSignal.timeout(patience),
      });
    } catch {
      throw new Problem(0);
    }
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// newKey names one intent of the visitor. Not crypto.randomUUID: browsers give
// that only to secure origins, and a desk may be opened over plain HTTP in a LAN.
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
