// One order as the desk knows it, put together from API answers and events that
// may come in any order. The newest version wins; at the same version the API's
// record wins over the event's, which carries no address and no link.

import { isSearching } from "./states.js";

const prefix = "logistica.orders.";

export function fromApi(order) {
  return { ...order, full: true, seen: 0 };
}

// fromEvent reads an event into what it says about its order, or null for a
// type this page does not know.
export function fromEvent(event) {
  const data = event.data ?? {};
  const base = { id: event.subject ?? data.order_id, version: version(event), full: false, updated_at: event.time };
  const known = { ...base, seen: base.version };
  switch (event.type) {
    case prefix + "OrderCreated":
      return { ...known, ...created(data), state: "CREATED", created_at: event.time };
    case prefix + "OrderStatusChanged":
      return { ...known, state: data.to, ...(data.attempt && { attempt: data.attempt }) };
    case prefix + "OrderAssigned": // takes a version of its own, which the next move must know
      return { ...known, state: "ASSIGNED", ...assigned(data) };
    case prefix + "OrderDelivered":
      return { ...known, state: "DELIVERED" };
    default:
      return null;
  }
}

export const isCreated = (event) => event.type === prefix + "OrderCreated";

function version(event) {
  return Number(event.sequence ?? event.data?.version ?? 0);
}

function created({ items = [], total = 0, currency = "BRL", pickup = {}, dropoff = {}, promised_at = null }) {
  return { items, total, currency, pickup, dropoff, promised_at };
}

// assigned names the courier by id: the name is for the API to tell.
function assigned({ courier_id, attempt, pickup_eta, delivery_eta }) {
  return { ...(courier_id && { courier: { id: courier_id } }), ...(attempt && { attempt }), pickup_eta, delivery_eta };
}

// merge never takes a row back to an older version.
export function merge(old, incoming) {
  if (!old) return incoming;
  const seen = Math.max(old.seen, incoming.seen);
  if (incoming.version > old.version) return { ...old, ...incoming, allowed: incoming.allowed, full: old.full || incoming.full, seen, ...details(old, incoming), ...carried(old, incoming) };
  if (incoming.full && (!old.full || incoming.version === old.version)) return fill(old, incoming, seen);
  return seen === old.seen ? old : { ...old, seen };
}

// details keeps what only the API tells when a later event repeats the order
// without it.
function details(old, incoming) {
  if (!old.full || incoming.full) return {};
  const { items, pickup, dropoff, created_at, promised_at } = old;
  return { items, pickup, dropoff, created_at, promised_at };
}

function fill(old, incoming, seen) {
  if (incoming.version === old.version) return { ...old, ...incoming, ...ride(incoming), seen };
  const { state, version, updated_at } = old;
  return { ...old, ...incoming, ...known(old, incoming), state, version, updated_at, allowed: undefined, seen };
}

// ride is what an attempt at finding a courier gives an order and takes away.
const ride = ({ courier, pickup_eta, delivery_eta, fee, attempt }) => ({ courier, pickup_eta, delivery_eta, fee, attempt });

// known is what an event said of the ride, then what an older answer did.
function known(old, incoming) {
  const said = Object.fromEntries(Object.entries(ride(old)).filter(([, value]) => value !== undefined));
  const before = isSearching(old.state) ? { ...ride({}), attempt: incoming.attempt } : ride(incoming);
  return { ...before, ...said };
}

// carried is the ride after news: what the API leaves out is no more, what an
// event leaves out still is, unless a courier is looked for anew.
function carried(old, incoming) {
  if (incoming.full) return ride(incoming);
  const attempt = incoming.attempt ?? old.attempt;
  if (isSearching(incoming.state)) return { ...ride({}), attempt };
  return { ...ride({ ...old, ...incoming }), attempt };
}

// instant is when an order was made, for sorting; 0 where nobody said yet.
const instant = (order) => Date.parse(order.created_at) || 0;

export function newestFirst(a, b) {
  if (a.id === b.id) return 0;
  return instant(b) - instant(a) || (a.id < b.id ? 1 : -1);
}
