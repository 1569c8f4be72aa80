// What a tracking page knows of its one order.
import { instant } from "./format.js";
import { path } from "./states.js";

// step applies an event to the order shown, so that the page moves at once; the
// snapshot read afterwards has the last word. An event that the snapshot already
// holds, because the stream repeated it, changes nothing.
export function step(order, event) {
  const to = event.data?.to;
  if (!to || event.sequence <= order.version) return order;
  return { ...order, version: event.sequence, state: to, timeline: [...(order.timeline ?? []), { state: to, at: event.time }] };
}

// newer keeps the page from going back: a snapshot may be read before an event
// and answered after it.
export const newer = (old, read) => (old && old.version > read.version ? old : read);

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
