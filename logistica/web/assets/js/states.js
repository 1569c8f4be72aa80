// The order's states as the pages order, colour and offer them. What is allowed
// is the API's word; the table here stands in until the API has spoken, for a
// row that is known only from its events.

export const path = [
  "CREATED", "ASSIGNING", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT",
  "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED",
];

export const states = [...path, "UNASSIGNABLE", "CANCELLED", "FAILED", "RETURNING", "RETURNED"];

// What a merchant may make of an order. Finding a courier happens by itself.
const next = {
  CREATED: ["CANCELLED"],
  ASSIGNING: ["CANCELLED"],
  UNASSIGNABLE: ["CREATED", "CANCELLED"],
  ASSIGNED: ["PICKUP_ONGOING", "CANCELLED"],
  PICKUP_ONGOING: ["ARRIVED_AT_MERCHANT", "CANCELLED"],
  ARRIVED_AT_MERCHANT: ["PICKED_UP", "CANCELLED"],
  PICKED_UP: ["DELIVERY_ONGOING", "FAILED"],
  DELIVERY_ONGOING: ["ARRIVED_AT_CUSTOMER", "FAILED"],
  ARRIVED_AT_CUSTOMER: ["DELIVERED", "FAILED"],
  FAILED: ["RETURNING"],
  RETURNING: ["RETURNED"],
};

const tones = {
  CREATED: "new", ASSIGNING: "wait", UNASSIGNABLE: "bad", ASSIGNED: "go", PICKUP_ONGOING: "go",
  ARRIVED_AT_MERCHANT: "at", PICKED_UP: "go", DELIVERY_ONGOING: "go", ARRIVED_AT_CUSTOMER: "at",
  DELIVERED: "done", CANCELLED: "off", FAILED: "bad", RETURNING: "wait", RETURNED: "off",
};

const searching = new Set(["CREATED", "ASSIGNING", "UNASSIGNABLE"]);
const reassignable = new Set(["ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT"]);
const returning = new Set(["FAILED", "RETURNING"]);
const ends = new Set(["DELIVERED", "CANCELLED", "RETURNED"]);
const grave = new Set(["CANCELLED", "FAILED", "UNASSIGNABLE"]);

export const allowedFrom = (state) => next[state] ?? [];
export const tone = (state) => tones[state] ?? "off";
export const isEnd = (state) => ends.has(state);
export const isSearching = (state) => searching.has(state);
export const isOut = (state) => state in tones && !searching.has(state) && !ends.has(state); // a courier has it
export const isReassignable = (state) => reassignable.has(state); // a courier has it, and not yet the goods
export const isReturning = (state) => returning.has(state);
export const isGrave = (state) => grave.has(state);

// target is the place the courier is on the way to.
export const target = (state) => (reassignable.has(state) || returning.has(state) ? "pickup" : "dropoff");

// choices puts the step forward first: that is the button a desk presses all day.
export function choices(state, allowed) {
  const here = path.indexOf(state);
  const rank = (to) => {
    if (isGrave(to)) return 2;
    const there = path.indexOf(to);
    return there >= 0 && there < here ? 1 : 0;
  };
  return [...(allowed ?? allowedFrom(state))].sort((a, b) => rank(a) - rank(b));
}
