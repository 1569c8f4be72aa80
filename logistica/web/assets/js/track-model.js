// What a tracking page knows of its one order.
import { instant } from "./format.js";
import { isNewer } from "./glide.js";
import { isEnd, isSearching, path } from "./states.js";

const located = "logistica.couriers.CourierLocationUpdated";

export const isPosition = (event) => event.type === located;

// step applies an event to the order shown, so that the page moves at once; the
// snapshot read afterwards has the last word. An event that the snapshot already
// holds, because the stream repeated it, changes nothing.
export function step(order, event) {
  if (isPosition(event)) return moved(order, event.data);
  const { to, pickup_eta, delivery_eta } = event.data ?? {};
  if (!(event.sequence > order.version)) return order;
  const next = { ...order, version: event.sequence };
  if (delivery_eta) return { ...next, pickup_eta, eta: delivery_eta };
  if (!to) return order;
  return without({ ...next, state: to, timeline: [...(order.timeline ?? []), { state: to, at: event.time }] });
}

// moved takes a position: the newest by the time the courier was there.
function moved(order, position) {
  if (isEnd(order.state) || isSearching(order.state) || !isNewer(position, order.position)) return order;
  return { ...order, position };
}

// without leaves out what is of no order in this state: who is still looked for
// is nowhere, and where a courier goes after the last one is nobody's business.
function without(order) {
  if (isEnd(order.state)) return { ...order, position: undefined, eta: undefined, pickup_eta: undefined, courier: undefined, delivery_code: undefined };
  if (isSearching(order.state)) return { ...order, position: undefined, eta: undefined, pickup_eta: undefined, courier: undefined };
  return order;
}

// newer keeps the page from going back: a snapshot may be read before an event
// and answered after it. A position that came by itself may be ahead of it too.
export function newer(old, read) {
  if (!old) return without(read);
  if (old.version > read.version) return old;
  const position = read.courier && !isNewer(read.position, old.position) ? old.position : read.position;
  return without({ ...read, position });
}

// done is the steps taken, without the detours: where the search for a courier
// began anew, the customer sees the latest search only.
export function done(order) {
  const steps = [];
  for (const entry of entries(order)) {
    const before = steps.findIndex((s) => s.state === entry.state);
    if (before < 0) steps.push(entry);
    else steps.length = before + 1;
  }
  return steps;
}

function entries({ state, created_at, timeline }) {
  return timeline?.length ? timeline : [{ state, at: created_at }];
}

const detours = { FAILED: ["RETURNING", "RETURNED"], RETURNING: ["RETURNED"] };

// ahead is the steps that remain if nothing goes wrong.
export function ahead(state) {
  const here = path.indexOf(state);
  return here < 0 ? (detours[state] ?? []) : path.slice(here + 1);
}

export function isLate(order, now) {
  const promised = instant(order.promised_at);
  const under = path.includes(order.state) && order.state !== "DELIVERED";
  return Boolean(promised && under && promised.getTime() < now);
}
