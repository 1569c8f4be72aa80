// The types of events that a store is told of, and how a choice of them is
// written in a form: the known ones are ticked, the rest is text.

// orders are what nearly every store wants; rest is how an order's courier and
// fee came about.
export const orders = [
  "logistica.orders.OrderCreated",
  "logistica.orders.OrderAssigned",
  "logistica.orders.OrderStatusChanged",
  "logistica.orders.OrderDelivered",
];

export const rest = [
  "logistica.couriers.CourierReserved",
  "logistica.couriers.CourierReservationFailed",
  "logistica.couriers.CourierReleaseAsked",
  "logistica.couriers.CourierReleased",
  "logistica.dispatch.CourierNotified",
  "logistica.dispatch.CourierNotificationFailed",
  "logistica.billing.PlatformFeeBilled",
  "logistica.billing.PlatformFeeFailed",
  "logistica.billing.PlatformFeeVoided",
];

const types = [...orders, ...rest];
const ping = "webhook.ping";

// typeWords is what a type means, or "" if nobody here knows.
export function typeWords(t, type) {
  if (type === ping) return t("hook.type.ping");
  return types.includes(type) ? t(`hook.type.${type.split(".").at(-1)}`) : "";
}

// deaf are the patterns that no known type matches: nothing comes by them. They are
// no error, since types may be added that are not known here yet.
export function deaf(patterns) {
  return (patterns ?? []).filter((p) => !types.some((type) => matches(p, type)));
}

// matches is as the server does it: * is one word, > at the end one or more.
function matches(pattern, type) {
  const parts = pattern.split("."), words = type.split("."), open = parts.at(-1) === ">";
  return (open ? parts.length <= words.length : parts.length === words.length)
    && parts.every((p, i) => p === "*" || p === words[i] || (open && i === parts.length - 1));
}

export function split(patterns = []) {
  return { ticked: patterns.filter((p) => types.includes(p)), more: patterns.filter((p) => !types.includes(p)).join(" ") };
}

export function join({ ticked, more }) {
  return [...new Set([...types.filter((each) => ticked.includes(each)), ...more.split(/[\s,;]+/).filter(Boolean)])];
}
