// The figures as charts: what each shows, and in which words.
import { html } from "./lib.js";
import { Chart } from "./chart.js";
import { useLanguage } from "./i18n.js";
import { states, tone } from "./states.js";

// duration writes how long something took, in its two largest units: what took a
// part of a second did not take none.
export function duration(t, ms) {
  const s = ms < 100 ? ms / 1000 : Math.round(ms / 100) / 10;
  if (s < 60) return t("fig.s", { n: s });
  const whole = Math.round(ms / 1000), rest = whole % 60;
  if (whole < 3600) return t("fig.min", { n: Math.floor(whole / 60) }) + (rest ? ` ${t("fig.s", { n: rest })}` : "");
  const min = Math.round(whole / 60);
  if (min < 48 * 60) return t("fig.h", { h: Math.floor(min / 60), min: String(min % 60).padStart(2, "0") });
  return t("fig.d", { n: Math.round(min / 1440) });
}

export const percent = (language, v, digits = 0) => new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: digits }).format(v);

// times label the beginnings of minutes or hours.
function times(f, language, hours) {
  const day = new Intl.DateTimeFormat(language, { weekday: "short", hour: "numeric" });
  return { label: (at) => f.soon(at), short: (at) => (hours > 24 ? day.format(new Date(at)) : f.short(at)) };
}

function useTimes(hours) {
  const { f, language } = useLanguage();
  return times(f, language === "pt" ? "pt-BR" : language, hours);
}

export function Minutes({ orders }) {
  const { t, f } = useLanguage();
  const { label, short } = useTimes(1);
  const points = orders.minutes.map((m) => ({ label: label(m.at), short: short(m.at), values: [m.created] }));
  return html`<${Chart} id="minutes" title=${t("fig.minutes")} why=${t("fig.minutes.why")} head=${t("fig.time")} kind="bars" unit="count" points=${points}
    series=${[{ name: t("fig.created"), tone: "new" }]} format=${f.number} />`;
}

export function Durations({ deliveries, hours }) {
  const { t } = useLanguage();
  const { label, short } = useTimes(hours);
  const points = deliveries.hours.map((h) => ({ label: label(h.hour), short: short(h.hour), values: [h.p50_ms ?? null, h.p95_ms ?? null] }));
  return html`<${Chart} id="durations" title=${t("fig.durations")} why=${t("fig.durations.why")} head=${t("fig.time")} kind="lines" unit="duration" points=${points}
    series=${[{ name: t("fig.p50"), tone: "done" }, { name: t("fig.p95"), tone: "at" }]} format=${(v) => duration(t, v)} />`;
}

export function Late({ deliveries, hours }) {
  const { t, language } = useLanguage();
  const { label, short } = useTimes(hours);
  const points = deliveries.hours.map((h) => ({
    label: label(h.hour), short: short(h.hour), values: [h.late_share ?? null], more: h.promised ? t("fig.late.of", { late: h.late, n: h.promised }) : "",
  }));
  return html`<${Chart} id="late" title=${t("fig.late")} why=${t("fig.late.why")} head=${t("fig.time")} kind="bars" unit="share" points=${points}
    series=${[{ name: t("fig.late"), tone: "bad" }]} format=${(v) => percent(language, v)} />`;
}

export function Fees({ fees }) {
  const { t, f } = useLanguage();
  const currency = fees.at(-1)?.currency ?? "BRL"; // another one has no place on this axis
  const of = new Map(fees.filter((d) => d.currency === currency).map((d) => [d.day, d.net_centavos]));
  const points = daysOf([...of.keys()]).map((day) => ({ label: date(f, day), short: date(f, day), values: [of.get(day) ?? 0] }));
  return html`<${Chart} id="fees" title=${t("fig.fees")} why=${t("fig.fees.why")} head=${t("fig.day")} kind="bars" unit="money" points=${points}
    series=${[{ name: t("fig.fees"), tone: "go" }]} format=${(v) => f.money(v, currency)} />`;
}

// daysOf is every day from the first to the last: one without a fee is a day too.
function daysOf(known) {
  const out = [];
  const last = known.at(-1);
  for (let at = new Date(`${known[0]}T00:00:00Z`); known.length && out.at(-1) !== last; at.setUTCDate(at.getUTCDate() + 1)) out.push(at.toISOString().slice(0, 10));
  return out;
}

// A date is a day, not a moment: at noon it is the same one in every near zone.
const date = (f, day) => f.date(`${day}T12:00:00`);

export function Couriers({ couriers, hours }) {
  const { t, language } = useLanguage();
  const { label, short } = useTimes(hours);
  const points = couriers.map((h) => ({ label: label(h.hour), short: short(h.hour), values: [h.utilisation ?? null] }));
  return html`<${Chart} id="couriers" title=${t("fig.couriers")} why=${t("fig.couriers.why")} head=${t("fig.time")} kind="lines" unit="share" points=${points}
    series=${[{ name: t("fig.utilisation"), tone: "wait" }]} format=${(v) => percent(language, v)} />`;
}

// States are bars that lie: their words are longer than their numbers.
export function States({ orders }) {
  const { t, f } = useLanguage();
  const rows = states.filter((s) => orders.by_state[s] > 0).map((s) => [s, orders.by_state[s]]);
  const most = Math.max(1, ...rows.map(([, n]) => n));
  return html`<section class="card" id="states" data-empty=${!rows.length} aria-labelledby="states-title">
    <div class="card-head"><h2 id="states-title">${t("fig.states")}</h2></div><p class="muted">${t("fig.states.why")}</p>
    ${!rows.length && html`<p class="empty">${t("fig.empty")}</p>`}
    ${rows.length > 0 && html`<table class="bars-table"><caption class="visually-hidden">${t("fig.states")}</caption>
      <thead class="visually-hidden"><tr><th scope="col">${t("fig.state")}</th><th scope="col">${t("fig.created")}</th></tr></thead>
      <tbody>${rows.map(([s, n]) => html`<tr key=${s} class="tone-${tone(s)}" data-state=${s} data-n=${n}><th scope="row">${t(`state.${s}`)}</th>
        <td><span class="bar-cell"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="bar" width=${Math.max(1, (100 * n) / most)} height="10" rx="1" /></svg><b class="num">${f.number(n)}</b></span></td></tr>`)}</tbody></table>`}
  </section>`;
}

export function Tenants({ tenants, onChoose }) {
  const { t, f, language } = useLanguage();
  const time = (ms) => (ms === undefined ? t("fig.none") : duration(t, ms));
  return html`<section class="card wide" id="tenants" data-empty=${!tenants.length} aria-labelledby="tenants-title">
    <div class="card-head"><h2 id="tenants-title">${t("fig.tenants")}</h2></div><p class="muted">${t("fig.tenants.why")}</p>
    ${!tenants.length ? html`<p class="empty">${t("fig.empty")}</p>` : html`<div class="scroll" tabindex="0" role="region" aria-labelledby="tenants-title"><table>
      <thead><tr><th scope="col">${t("fig.merchant")}</th>${["created", "tile.delivered", "p50", "p95", "late"].map((k) => html`<th key=${k} scope="col">${t(`fig.${k}`)}</th>`)}</tr></thead>
      <tbody>${tenants.map((m) => html`<tr key=${m.id} data-tenant=${m.id}><th scope="row"><button type="button" class="quiet" onClick=${() => onChoose(m.id)}>${m.name}</button></th>
        <td class="num">${f.number(m.created)}</td><td class="num">${f.number(m.delivered)}</td><td class="num">${time(m.p50_ms)}</td><td class="num">${time(m.p95_ms)}</td>
        <td class="num">${m.late_share === undefined ? t("fig.none") : percent(language, m.late_share, 1)}</td></tr>`)}</tbody></table></div>`}
  </section>`;
}
