// Where values lie on an axis, and which of them are written beside it.

const s = 1000, min = 60 * s, h = 60 * min, d = 24 * h;
const durations = [1, 2, 5, 10, 15, 30].map((n) => n * s)
  .concat([1, 2, 5, 10, 15, 30].map((n) => n * min), [1, 2, 3, 6, 12].map((n) => n * h), [1, 2, 5, 10, 20, 50].map((n) => n * d));

// steps are distances between ticks that people count in, the least first.
const steps = {
  duration: (least) => durations.find((step) => step >= least) ?? decimal(least),
  share: (least) => [0.05, 0.1, 0.25, 0.5].find((step) => step >= least) ?? 0.5,
  count: (least) => Math.max(1, decimal(least)),
  money: (least) => Math.max(100, decimal(least)),
};

function decimal(least) {
  const power = 10 ** Math.floor(Math.log10(least || 1));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least);
}

// ticks of an axis from zero (or from the least value, where that is below it)
// to at least the greatest, about four of them.
export function ticks(unit, values) {
  const known = values.filter((v) => v !== null && v !== undefined);
  const most = Math.max(0, ...known), least = Math.min(0, ...known);
  const step = steps[unit]((most - least) / 4 || 1e-9);
  const out = [];
  for (let i = Math.floor(least / step + 1e-9); i <= Math.ceil(most / step - 1e-9) || out.length < 2; i++) out.push(i * step);
  return out;
}

// stretches cuts a row of values where one is missing, so that a line does not
// tell of what nobody knows: each is [index, value]…
export function stretches(values) {
  const out = [];
  let open = false;
  values.forEach((v, i) => {
    if (v === null || v === undefined) {
      open = false;
      return;
    }
    if (!open) out.push([]);
    open = true;
    out.at(-1).push([i, v]);
  });
  return out;
}
