// The log of one endpoint, as shown: newest first, refreshed in place. What is
// being read does not move: while a delivery is open, the keyboard is in the list
// or its beginning is out of sight, new ones wait until they are asked for, and
// one that no longer fits the filter stays until another is chosen.
import { Problem } from "./api.js";

const page = 50;
const most = 500; // deliveries shown; older ones are dropped and can be loaded again
const stragglers = 5; // asked for one by one in a round
const soon = 700; // ms between looks at what somebody waits for
const patience = 60_000; // ms for which they are that frequent

export class HookLog {
  constructor(api, id, { changed = () => {}, said = () => {}, holds = () => false } = {}) {
    Object.assign(this, { api, id, changed, said, holds });
    this.known = new Map(); // event -> its delivery, of those shown or about to be
    this.filter = "";
    this.rows = null; // events shown, newest first
    this.fresh = []; // events that wait to be shown
    this.more = false;
    this.backlog = null;
    this.problem = null;
    this.readAt = null;
    this.resent = new Map(); // event -> how a resend goes: sending, or the problem
    this.ping = null; // {event, status, delivery}
    this.next = 0; // of the stragglers
    this.gap = false;
    this.turn = 0;
    this.closed = false;
    this.reading = null;
  }

  // stop asks nothing more and waits for what was asked: a log whose endpoint is
  // deleted must not be asked for.
  async stop() {
    this.closed = true;
    await this.reading;
  }

  // resume is for when the endpoint stayed after all.
  resume() {
    this.closed = false;
  }

  refresh() {
    if (this.closed) return this.reading;
    return (this.reading = this.#refresh());
  }

  async #refresh() {
    const turn = ++this.turn;
    try {
      const [{ deliveries }, backlog] = await Promise.all([
        this.api.deliveries(this.id, { state: this.filter, limit: page }),
        this.api.backlog(this.id),
      ]);
      if (turn !== this.turn) return;
      Object.assign(this, { backlog, problem: null, readAt: new Date() });
      this.#take(deliveries);
      await this.#look(deliveries);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (turn === this.turn) this.problem = problem;
    } finally {
      this.changed();
    }
  }

  // select shows the deliveries of a state, or all.
  select(state) {
    this.filter = state;
    Object.assign(this, { rows: null, fresh: [], more: false });
    this.known.clear();
    this.changed();
    return this.refresh();
  }

  // show lets in what has waited.
  show() {
    const all = [...new Set([...this.fresh, ...(this.gap ? [] : this.rows)])].sort().reverse();
    this.more ||= this.gap || all.length > most;
    Object.assign(this, { rows: all.slice(0, most), fresh: [], gap: false });
    this.#forget();
    this.changed();
  }

  // earlier loads a page more and gives the first of it.
  async earlier() {
    const filter = this.filter, before = this.rows.at(-1);
    const { deliveries } = await this.api.deliveries(this.id, { state: filter, before, limit: page });
    if (filter !== this.filter || before !== this.rows?.at(-1)) return ""; // another list by now
    for (const d of deliveries) this.known.set(d.event, d);
    this.rows = [...new Set([...this.rows, ...deliveries.map((d) => d.event)])];
    this.more = deliveries.length === page;
    this.changed();
    return deliveries[0]?.event;
  }

  #take(deliveries) {
    for (const d of deliveries) this.known.set(d.event, d);
    const events = deliveries.map((d) => d.event);
    if (this.rows === null) {
      Object.assign(this, { rows: events, more: events.length === page });
      return;
    }
    const shown = new Set(this.rows);
    this.fresh = events.filter((each) => !shown.has(each));
    // More came than a page holds: what lies between is not known.
    this.gap = this.fresh.length === page;
    if (this.fresh.length && !this.holds()) this.show();
    this.#forget();
  }

  // forget keeps what is shown or waits: a log held for a day must not grow.
  #forget() {
    const kept = new Set([...this.rows, ...this.fresh]);
    for (const event of this.known.keys()) if (!kept.has(event)) this.known.delete(event);
  }

  // look reads anew what is shown, may have changed and was not on the page.
  async #look(deliveries) {
    const read = new Set(deliveries.map((d) => d.event)), last = deliveries.at(-1)?.event ?? "";
    const old = this.rows.filter((event) => {
      const state = this.known.get(event)?.state;
      return !read.has(event) && (state === "pending" || (event > last && state === this.filter));
    });
    this.next = (this.next + stragglers) % Math.max(old.length, 1);
    const turn = [...old.slice(this.next), ...old.slice(0, this.next)].slice(0, stragglers);
    await Promise.all(turn.map((event) => this.#read(event).catch(() => {}))); // the page was read: that is what counts
  }

  async #read(event) {
    const d = await this.api.delivery(this.id, event);
    this.known.set(event, d);
    this.changed();
    return d;
  }

  async resend(event) {
    if (this.resent.get(event) === "sending") return;
    this.resent.set(event, "sending");
    this.changed();
    try {
      await this.api.resend(this.id, event);
      this.said({ what: "resent" });
      const d = await this.#await(event);
      this.resent.delete(event);
      if (d) this.said(verdict(d));
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      this.resent.set(event, problem);
    }
    this.changed();
  }

  async test() {
    if (["asking", "waiting"].includes(this.ping?.status)) return;
    this.ping = { status: "asking" };
    this.changed();
    try {
      const { event } = await this.api.ping(this.id);
      this.ping = { status: "waiting", event };
      this.refresh();
      const delivery = await this.#await(event);
      this.ping = { status: delivery ? "answered" : "long", event, delivery };
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      this.ping = { status: "refused", problem };
    }
    this.changed();
  }

  // replay sends all that is asked for, a page at a time, and gives how many, or
  // throws; each is told how many so far.
  async replay(what, each = () => {}) {
    let n = 0;
    for (let after; !this.closed;) {
      const { count, next } = await this.api.replay(this.id, { ...what, ...(after && { after }) });
      each(n += count);
      if (!next) break;
      after = next;
    }
    this.said({ what: "replayed", n });
    await this.refresh();
    return n;
  }

  // await looks at a delivery until its next attempt is over.
  async #await(event) {
    const end = Date.now() + patience;
    while (!this.closed && Date.now() < end) {
      const d = await this.#read(event);
      if (d.state !== "pending" || d.attempts > 0) return d;
      await new Promise((over) => { setTimeout(over, soon); });
    }
    return null;
  }
}

// verdict is what an attempt has come to, to be told.
export function verdict(d) {
  return { what: d.state === "delivered" ? "delivered" : "failed", attempt: d.log.at(-1) };
}
