// Numbers, money and time as the visitor's locale writes them. Times carry their
// zone where a date is shown: a desk and its customer may sit in different ones.

export function formats(locale) {
  const date = (options) => new Intl.DateTimeFormat(locale, options);
  const clock = date({ hour: "numeric", minute: "2-digit", second: "2-digit" });
  const short = date({ hour: "numeric", minute: "2-digit" });
  const dayClock = date({ day: "2-digit", month: "short", hour: "numeric", minute: "2-digit" });
  const daySeconds = date({ day: "2-digit", month: "short", hour: "numeric", minute: "2-digit", second: "2-digit" });
  const day = date({ day: "2-digit", month: "short" });
  const full = date({ dateStyle: "medium", timeStyle: "long" });
  const fine = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 });
  const at = (formatter) => (value) => {
    const when = instant(value);
    return when ? formatter.format(when) : "";
  };
  return {
    clock: at(clock),
    short: at(short),
    date: at(day),
    full: at(full),
    // soon leaves the day out where it is today's.
    soon: (value) => at(isToday(instant(value)) ? short : dayClock)(value),
    // stamp is soon to the second: attempts follow each other quickly.
    stamp: (value) => at(isToday(instant(value)) ? clock : daySeconds)(value),
    zone: () => zoneOf(full),
    number: (n) => whole.format(n),
    tenth: (n) => fine.format(n),
    millis: (n) => `${whole.format(n)} ms`,
    ms: (n) => `${(n < 100 ? fine : whole).format(n)} ms`,
    money: (cents, currency) => money(locale, currency || "BRL").format(cents / 100),
    decimal: (cents) => new Intl.NumberFormat(locale, { minimumFractionDigits: 2, useGrouping: false }).format(cents / 100),
  };
}

// instant reads a time as the API writes it (RFC 3339) or as an event's body may
// carry it (microseconds).
export function instant(value) {
  if (value === null || value === undefined || value === "") return null;
  const when = typeof value === "number" ? new Date(value > 1e14 ? value / 1000 : value) : new Date(value);
  return Number.isNaN(when.getTime()) ? null : when;
}

// age is how long ago, in the largest unit that fits.
export function age(t, value, now) {
  const when = instant(value);
  if (!when) return "";
  const s = Math.floor((now - when.getTime()) / 1000);
  if (s < 5) return t("age.now");
  if (s < 60) return t("age.s", { n: s });
  if (s < 3600) return t("age.min", { n: Math.floor(s / 60) });
  if (s < 172_800) return t("age.h", { n: Math.floor(s / 3600) });
  return t("age.d", { n: Math.floor(s / 86_400) });
}

// cents reads a price as people write it in either language, or null.
export function cents(text) {
  const plain = text.trim().replace(",", ".");
  if (!/^\d{1,7}(\.\d{1,2})?$/.test(plain)) return null;
  return Math.round(Number(plain) * 100);
}

// shortId is the end of an id: ids made close together begin alike.
export const shortId = (id) => String(id).replaceAll("-", "").slice(-6).toUpperCase();

function isToday(when) {
  return when?.toDateString() === new Date().toDateString();
}

function zoneOf(formatter) {
  const part = formatter.formatToParts(new Date()).find((p) => p.type === "timeZoneName");
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return part ? `${name.replaceAll("_", " ")} (${part.value})` : name;
}

const moneys = new Map();

function money(locale, currency) {
  const key = `${locale} ${currency}`;
  if (!moneys.has(key)) moneys.set(key, new Intl.NumberFormat(locale, { style: "currency", currency, currencyDisplay: "narrowSymbol" }));
  return moneys.get(key);
}
