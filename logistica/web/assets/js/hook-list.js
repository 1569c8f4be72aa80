// The endpoints, each with how it does at a glance.
import { html } from "./lib.js";
import { Bars } from "./hook-bars.js";
import { latest, stateOf, tones } from "./hook-model.js";
import { deaf, typeWords } from "./hook-types.js";
import { useLanguage } from "./i18n.js";
import { instant } from "./format.js";

export function EndpointList({ model, onAdd, children }) {
  const { t } = useLanguage();
  const { endpoints } = model;
  if (!endpoints.length) return html`<section class="box hook-empty"><h2 data-heading tabindex="-1">${t("hook.empty")}</h2><p class="muted">${t("hook.empty.how")}</p>
    <button type="button" class="primary" id="add" onClick=${onAdd}>${t("hook.empty.add")}</button></section>`;
  return html`<div class="hook-bar"><div><h2 data-heading tabindex="-1" id="count" data-n=${endpoints.length}>${t("hook.list.n", { n: endpoints.length })}</h2> ${children}</div>
      <button type="button" class="primary" id="add" onClick=${onAdd}>${t("hook.add")}</button></div>
    <ul class="endpoints" aria-label=${t("hook.list")}>${endpoints.map((e) => html`<${Card} key=${e.id} endpoint=${e} recent=${model.recent.get(e.id)} />`)}</ul>`;
}

function Card({ endpoint: e, recent }) {
  const { t } = useLanguage();
  const state = stateOf(e);
  return html`<li class="box endpoint" data-endpoint=${e.id} data-state=${state}>
    <div class="endpoint-id"><a class="endpoint-link mono" href="#endpoint=${e.id}">${e.url}</a>
      <p>${e.description && html`<span>${e.description}</span> `}<${Wants} types=${e.types} /></p></div>
    <${StateChip} state=${state} />
    <${Bars} deliveries=${recent} />
    <p class="endpoint-last"><${Lately} recent=${recent} since=${e.failing_since} /></p>
    ${state !== "active" && html`<p class="endpoint-why"><${Why} endpoint=${e} state=${state} /></p>`}
    <${Deaf} types=${e.types} />
  </li>`;
}

export function StateChip({ state }) {
  const { t } = useLanguage();
  return html`<span class="chip tone-${tones[state]}" data-chip=${state}><i aria-hidden="true"></i>${t(`hook.state.${state}`)}</span>`;
}

// Wants is the choice of events, in words where there are some.
export function Wants({ types = [] }) {
  const { t } = useLanguage();
  if (!types?.length) return html`<small>${t("hook.types.all")}</small>`;
  return html`<small class="wants">${types.map((type) => html`<span key=${type} class="tag" title=${type}>${typeWords(t, type) || html`<code class="mono">${type}</code>`}</span>`)}</small>`;
}

// Deaf warns of a choice by which nothing comes: such an endpoint looks well for good.
export function Deaf({ types }) {
  const { t } = useLanguage();
  const none = deaf(types);
  if (!none.length) return null;
  return html`<p class="trouble" data-deaf>${t(none.length === types.length ? "hook.types.deaf.all" : "hook.types.deaf.some", { types: none.join(", "), n: none.length })}</p>`;
}

// Lately falls back on since when all fails, where what is at hand only waits.
function Lately({ recent, since }) {
  const { t } = useLanguage();
  const { delivered, failed } = latest(recent);
  const moments = [
    delivered && html`<${Moment} at=${delivered} words="hook.last.delivered" />`,
    failed ? html`<${Moment} at=${failed} words="hook.last.failed" />` : since && html`<${Moment} at=${since} words="hook.last.failing" />`,
  ].filter(Boolean);
  if (!moments.length) return html`<small>${t(recent?.length ? "hook.last.waiting" : "hook.last.none")}</small>`;
  return html`<small>${moments[0]}${moments[1] && html` · ${moments[1]}`}</small>`;
}

// Moment is a time as short as it may be; where it is pointed at, in full and
// with its zone.
export function Moment({ at, words }) {
  const { t, f } = useLanguage();
  const time = f.stamp(at);
  return html`<time class="num" datetime=${instant(at)?.toISOString()} title=${f.full(at)}>${words ? t(words, { time }) : time}</time>`;
}

// Why says what is wrong with an endpoint. The sender's own reasons have words in
// both languages; a person's stay as they are.
export function Why({ endpoint: e, state }) {
  const { t, f } = useLanguage();
  if (state === "disabled") return html`${t("hook.why.disabled")} ${reasonOf(t, f, e.reason)}`;
  if (state === "open") return t("hook.why.open", { n: e.failures, time: f.stamp(e.open_until) });
  return t("hook.why.failing", { n: e.failures, time: f.stamp(e.failing_since) });
}

function reasonOf(t, f, reason) {
  if (!reason) return "";
  if (reason.startsWith("it answered 410")) return t("hook.why.gone");
  const since = /^every call has failed since (\S+)$/.exec(reason)?.[1];
  return since ? t("hook.why.days", { time: f.full(since) }) : t("hook.why.reason", { reason });
}
