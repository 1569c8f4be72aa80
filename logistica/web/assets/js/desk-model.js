// What the desk knows, apart from how it looks: orders, creations under way,
// status changes under way, and the time from click to confirmation.
//
// An order is confirmed when its OrderCreated comes back over the stream, that
// is, after outbox, broker and consumer. That event may overtake the answer to
// the POST that caused it; both arrivals are kept by order id and the later one
// joins them.
import { Bounded } from "./bounded.js";
import { FleetModel, located } from "./fleet-model.js";
import { fromApi, fromEvent, isCreated, merge, newestFirst } from "./order.js";
import { newKey, Problem } from "./api.js";
import { Wanted } from "./wanted.js";

const page = 50;
const grace = 1000; // ms that an unknown new order waits for an answer in flight

export class DeskModel {
  constructor(api, { changed = () => {}, said = () => {}, now = () => performance.now(), limit = 200 } = {}) {
    Object.assign(this, { api, changed, said, now, limit });
    this.orders = new Map(); // id -> order
    this.orphans = new Bounded(500); // id -> what events said of an order not loaded
    this.heard = new Bounded(1000); // id -> when its OrderCreated arrived
    this.held = new Set(); // ids not shown yet: probably ours, answer in flight
    this.creations = new Map(); // key -> creation without an id yet
    this.mine = new Map(); // id -> creation that has one
    this.moves = new Map(); // id -> status change under way, or refused
    this.filter = "";
    this.cursor = "";
    this.evicted = false;
    this.counts = null; // state -> how many, from the read model
    this.stats = { count: 0, sum: 0 };
    this.cards = new Bounded(1000); // courier's id -> name and vehicle
    this.wanted = new Wanted((id) => this.refresh(id));
    this.fleet = new FleetModel({ read: (id) => this.wanted.ask(id), locate: (id) => api.position(id) });
  }

  // --- creating

  create(body) {
    const key = newKey();
    this.creations.set(key, { key, body, at: new Date().toISOString() });
    return this.#send(key);
  }

  // retry sends the same intent again: same key, so it cannot create twice.
  retry(key) {
    return this.creations.has(key) ? this.#send(key) : undefined;
  }

  discard(key) {
    this.creations.delete(key);
    this.changed();
  }

  async #send(key) {
    const clicked = this.now();
    const before = this.creations.get(key);
    const creation = { ...before, clicked, first: before.first ?? clicked, status: "sending", problem: null };
    this.creations.set(key, creation);
    this.changed();
    try {
      this.#accepted(creation, fromApi(await this.api.create(creation.body, key)));
    } catch (problem) {
      this.creations.set(key, { ...creation, status: "failed", problem: asProblem(problem) });
      this.said({ what: "failed", problem: asProblem(problem) });
    }
    if (!this.#sending()) this.#release();
    this.changed();
  }

  #accepted(creation, order) {
    this.creations.delete(creation.key);
    this.mine.set(order.id, { ...creation, status: "accepted", ms: null });
    this.held.delete(order.id);
    this.#take(order);
    if (this.heard.has(order.id)) this.#confirm(order.id, this.heard.get(order.id));
  }

  #confirm(id, arrived) {
    const creation = this.mine.get(id);
    if (!creation || creation.ms !== null) return;
    // An event from before this click answers an earlier try with the same key.
    const start = arrived >= creation.clicked ? creation.clicked : creation.first;
    const ms = arrived - start;
    this.mine.set(id, { ...creation, status: "confirmed", ms });
    this.stats = { count: this.stats.count + 1, sum: this.stats.sum + ms };
    this.said({ what: "confirmed", id, ms });
  }

  #sending() {
    for (const c of this.creations.values()) if (c.status === "sending") return true;
    return false;
  }

  #hold(id) {
    this.held.add(id);
    setTimeout(() => this.held.delete(id) && this.changed(), grace);
  }

  #release() {
    this.held.clear();
  }

  // --- changing status

  async move(id, to, reason = "") {
    const order = this.find(id);
    if (!order || this.moves.get(id)?.status === "sending") return;
    const move = { to, status: "sending", problem: null };
    this.#setMove(id, move);
    const body = { to, expected_version: order.version, ...(reason && { reason }) };
    try {
      const answer = fromApi(await this.api.move(id, body, newKey()));
      this.#setMove(id, { ...move, status: "accepted", version: answer.version });
      this.#hear(answer);
      this.#settle(id, answer);
    } catch (problem) {
      await this.#refused(id, move, asProblem(problem));
    }
    this.changed();
  }

  // reassign has the courier let go. The order goes back when it hears of that,
  // so it is shown where it is until then.
  async reassign(id) {
    if (!this.find(id) || ["sending", "accepted"].includes(this.moves.get(id)?.status)) return;
    const move = { to: "CREATED", letsGo: true, status: "sending", problem: null };
    this.#setMove(id, move);
    try {
      const { version } = await this.api.reassign(id);
      this.#setMove(id, { ...move, status: "accepted", version: version + 1 });
      this.#settle(id);
    } catch (problem) {
      await this.#refused(id, move, asProblem(problem));
    }
    this.changed();
  }

  // resetCode lets the courier try the delivery code again.
  async resetCode(id) {
    this.#hear(fromApi(await this.api.resetCode(id)));
    this.changed();
  }

  async #refused(id, move, problem) {
    this.#setMove(id, { ...move, status: "refused", problem });
    this.said({ what: "refused", problem });
    // Somebody else moved it, or the answer was lost: the API knows which.
    await this.refresh(id).catch(() => {});
  }

  dismiss(id) {
    if (this.moves.get(id)?.status === "refused") this.moves.delete(id);
    this.changed();
  }

  #setMove(id, move) {
    this.moves.set(id, move);
    this.changed();
  }

  // settle ends a change once its event has come back over the stream.
  #settle(id, said) {
    const move = this.moves.get(id), order = this.find(id) ?? said;
    if (move?.status !== "accepted" || (order?.seen ?? 0) < move.version) return;
    this.moves.delete(id);
    this.said({ what: "moved", id, to: move.letsGo ? order.state : move.to });
  }

  // --- hearing

  // event says whether it was one of an order: where couriers are changes no count.
  event(event) {
    const arrived = this.now();
    if (this.fleet.hear(event)) {
      this.changed();
      return false;
    }
    const said = fromEvent(event);
    if (!said?.id) return false;
    if (isCreated(event)) this.#heardCreated(said.id, arrived);
    if (isCreated(event)) this.#take(said);
    else this.#hear(said);
    if (said.courier && !this.cards.has(said.courier.id)) this.wanted.ask(said.id, said.courier.id);
    this.#settle(said.id, said);
    this.changed();
    return true;
  }

  // hear takes what is said of an order that the list may not hold.
  #hear(said) {
    if (this.orders.has(said.id)) return this.#take(said);
    if (!said.full) this.orphans.set(said.id, merge(this.orphans.get(said.id), said));
    this.#meet(said);
    this.fleet.take(said);
    return undefined;
  }

  // meet learns a courier's name, which no event tells.
  #meet({ full, courier }) {
    if (full && courier?.id && (courier.name || !this.cards.has(courier.id))) this.cards.set(courier.id, courier);
  }

  #heardCreated(id, arrived) {
    if (this.heard.has(id)) return; // delivered again: the first arrival counts
    this.heard.set(id, arrived);
    if (this.mine.has(id)) this.#confirm(id, arrived);
    else if (!this.orders.has(id) && this.#sending()) this.#hold(id);
  }

  #take(order) {
    const merged = merge(this.orders.get(order.id), order);
    const orphan = this.orphans.get(order.id);
    const now = orphan ? merge(merged, orphan) : merged;
    this.orders.set(order.id, now);
    this.orphans.delete(order.id);
    this.#meet(order);
    this.fleet.take(now);
  }

  find(id) {
    return this.orders.get(id) ?? this.fleet.orders.get(id);
  }

  // --- reading

  // snapshot reads the newest page anew. After a reset the stream will not
  // repeat what was missed, so a creation already answered is no longer waited for.
  async snapshot({ lost = false } = {}) {
    const since = this.now(), known = this.fleet.known();
    const { orders, next_cursor } = await this.api.orders({ state: this.filter, limit: page });
    if (lost) this.fleet.forget(known);
    for (const order of orders) this.#take(fromApi(order));
    this.cursor = next_cursor ?? "";
    this.evicted = false;
    if (lost) this.#stopWaiting(since);
    this.changed();
    this.fleet.look().then(this.changed);
  }

  // refresh reads one order anew.
  async refresh(id) {
    this.#hear(fromApi(await this.api.order(id)));
    this.changed();
  }

  // told reads an order with what happened to it.
  async told(id) {
    const { history = [], ...order } = await this.api.told(id);
    this.#hear(fromApi(order));
    this.changed();
    return { order: fromApi(order), history };
  }

  // locate reads where an order's courier is and when it is expected at the door,
  // if the courier was heard of.
  async locate(id) {
    const { eta, ...fix } = (await this.api.position(id)) ?? {};
    if (fix.fix_time) this.fleet.hear({ type: located, data: { order_id: id, ...fix } });
    return eta;
  }

  #stopWaiting(since) {
    for (const [id, c] of this.mine) {
      if (c.status === "accepted" && c.clicked < since) this.mine.set(id, { ...c, status: "saved" });
    }
    for (const [id, move] of this.moves) if (move.status === "accepted") this.moves.delete(id);
  }

  async select(state) {
    this.filter = state;
    this.cursor = "";
    this.changed();
    await this.snapshot();
  }

  // more widens the window by one page. Where live orders pushed old ones out,
  // the cursor points past a hole, so the pages are walked again from the top.
  async more() {
    this.limit += page;
    const oldest = this.view().at(-1)?.order;
    let cursor = this.evicted ? "" : this.cursor;
    this.evicted = false;
    for (let walked = 0; walked < 40; walked++) {
      const { orders, next_cursor } = await this.api.orders({ state: this.filter, limit: page, cursor });
      for (const order of orders) this.#take(fromApi(order));
      cursor = this.cursor = next_cursor ?? "";
      if (!cursor || !oldest || orders.some((o) => newestFirst(oldest, o) < 0)) break;
    }
    this.changed();
  }

  async refreshCounts() {
    const { counts } = await this.api.counts();
    this.counts = counts;
    this.changed();
  }

  hasMore() {
    return Boolean(this.cursor) || this.evicted;
  }

  // complete reads what only the API tells of orders known by their events: from
  // the newest page on, as far as the window of rows reaches.
  async complete() {
    let cursor = "";
    for (let read = 0; read < this.limit && this.needsDetail(); read += page) {
      const { orders, next_cursor } = await this.api.orders({ limit: page, cursor });
      for (const order of orders) this.#take(fromApi(order));
      this.changed();
      cursor = next_cursor ?? "";
      if (!cursor) return;
    }
  }

  needsDetail() {
    for (const order of this.orders.values()) if (!order.full) return true;
    return false;
  }

  // --- showing

  shownState(order) {
    const move = this.moves.get(order.id);
    return move && move.status !== "refused" && !move.letsGo ? move.to : order.state;
  }

  // view is the rows to show, newest first; what falls out of the window is
  // forgotten.
  view() {
    const all = [...this.orders.values()].sort(newestFirst);
    const kept = { in: 0, out: 0 };
    const rows = [];
    for (const order of all) {
      const shown = !this.filter || this.shownState(order) === this.filter;
      if (++kept[shown ? "in" : "out"] > this.limit) this.#forget(order.id, shown);
      else if (shown && !this.held.has(order.id)) rows.push(this.#row(order));
    }
    return rows;
  }

  #row(order) {
    const mine = this.mine.get(order.id);
    return { key: mine?.key ?? order.id, order, mine, move: this.moves.get(order.id), card: this.card(order) };
  }

  // card is who carries an order, as far as that is known.
  card({ courier }) {
    return courier && (this.cards.get(courier.id) ?? courier);
  }

  #forget(id, shown) {
    this.orders.delete(id);
    this.mine.delete(id);
    this.moves.delete(id);
    this.evicted ||= shown;
  }

  // waiting is the creations without an order yet, newest first.
  waiting() {
    return [...this.creations.values()].reverse();
  }
}

const asProblem = (e) => (e instanceof Problem ? e : new Problem(0, { detail: String(e?.message ?? e) }));
