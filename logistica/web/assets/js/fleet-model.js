// The orders that are out with a courier, and where the couriers are: what the
// desk's map shows. It is apart from the list, which holds a window of the newest
// orders and a filter: an order made hours ago may still be on its way.
import { Bounded } from "./bounded.js";
import { instant } from "./format.js";
import { isNewer } from "./glide.js";
import { merge, newestFirst } from "./order.js";
import { isOut } from "./states.js";

export const located = "logistica.couriers.CourierLocationUpdated";

// isFresh: who was assigned just now is heard of in a moment, and not known before.
const isFresh = ({ state, updated_at }) => state === "ASSIGNED" && Date.now() - instant(updated_at)?.getTime() < 10_000;

export class FleetModel {
  // read(id) reads an order, locate(id) where its courier is.
  constructor({ read, locate, limit = 60 }) {
    Object.assign(this, { read, locate, limit });
    this.orders = new Bounded(500); // id -> order that is out
    this.fixes = new Bounded(500); // id -> the newest position
    this.looking = false;
  }

  // take hears all that is said of any order, by the API or by an event.
  take(said) {
    const known = this.orders.get(said.id);
    if (!known && !said.full) return;
    const order = merge(known, said);
    if (isOut(order.state)) this.orders.set(order.id, order);
    else this.#end(order.id);
  }

  // hear takes a position and says whether the event was one. One of an order
  // nobody told of here has that order read.
  hear(event) {
    if (event.type !== located) return false;
    const { order_id: id, ...fix } = event.data ?? {};
    if (!id || !isNewer(fix, this.fixes.get(id))) return true;
    this.fixes.set(id, fix);
    if (!this.orders.has(id) && this.orders.size < this.limit) this.read(id);
    return true;
  }

  #end(id) {
    this.orders.delete(id);
    this.fixes.delete(id);
  }

  // known is what is held now, for forget.
  known() {
    return { orders: new Map(this.orders), fixes: new Map(this.fixes) };
  }

  // forget lets go of what nothing was heard of since it was known: after a gap
  // in the stream nobody can tell who came home. Who is out is heard of again.
  forget({ orders, fixes }) {
    for (const [id, order] of orders) if (this.orders.get(id) === order && this.fixes.get(id) === fixes.get(id)) this.#end(id);
  }

  // look asks where the couriers are of whom no position came yet: a stream that
  // was just opened tells only what happens from now on.
  async look() {
    if (this.looking) return;
    this.looking = true;
    for (const order of this.rides()) {
      if (!order.courier || this.position(order) || isFresh(order)) continue;
      const id = order.id, fix = await this.locate(id).catch(() => null); // asked again; null: not heard of yet
      if (fix && isNewer(fix, this.fixes.get(id))) this.fixes.set(id, fix);
    }
    this.looking = false;
  }

  // position is where the order's courier is. One of somebody who had it before
  // is none.
  position({ id, courier }) {
    const fix = this.fixes.get(id);
    return fix && (!fix.courier_id || fix.courier_id === courier?.id) ? fix : null;
  }

  // rides is what the map has room for, the newest first.
  rides() {
    return [...this.orders.values()].sort(newestFirst).slice(0, this.limit);
  }
}
