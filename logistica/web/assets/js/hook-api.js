// What the page of webhooks asks of the API.
import { Api } from "./api.js";

const root = "/v1/webhooks";

export class HookApi {
  constructor(key) {
    this.api = new Api(key);
  }

  me() {
    return this.api.me();
  }

  list() {
    return this.api.send("GET", `${root}/endpoints`);
  }

  recent() {
    return this.api.send("GET", `${root}/recent`);
  }

  create(body) {
    return this.api.send("POST", `${root}/endpoints`, body);
  }

  update(id, body) {
    return this.api.send("PUT", one(id), body);
  }

  remove(id) {
    return this.api.send("DELETE", one(id));
  }

  enable(id) {
    return this.api.send("POST", `${one(id)}/enable`);
  }

  disable(id, reason) {
    return this.api.send("POST", `${one(id)}/disable`, { ...(reason && { reason }) });
  }

  // rotate makes a new secret; the old one signs too for so many seconds.
  rotate(id, overlap) {
    return this.api.send("POST", `${one(id)}/rotate`, { overlap_s: overlap });
  }

  ping(id) {
    return this.api.send("POST", `${one(id)}/ping`);
  }

  backlog(id) {
    return this.api.send("GET", `${one(id)}/backlog`);
  }

  // deliveries is a page of them, that of the latest event first; before is the
  // last of the page before.
  deliveries(id, { state = "", before = "", limit = 50 } = {}) {
    const query = new URLSearchParams({ limit: String(limit) });
    if (state) query.set("state", state);
    if (before) query.set("before", before);
    return this.api.send("GET", `${one(id)}/deliveries?${query}`);
  }

  delivery(id, event) {
    return this.api.send("GET", delivery(id, event));
  }

  resend(id, event) {
    return this.api.send("POST", `${delivery(id, event)}/resend`);
  }

  // replay sends a page of what is asked for; its next is the after of the one to
  // come.
  replay(id, what) {
    return this.api.send("POST", `${one(id)}/replay`, what);
  }

  body(event) {
    return this.api.send("GET", `${root}/events/${encodeURIComponent(event)}`);
  }
}

const one = (id) => `${root}/endpoints/${encodeURIComponent(id)}`;
const delivery = (id, event) => `${one(id)}/deliveries/${encodeURIComponent(event)}`;
