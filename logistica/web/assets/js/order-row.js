// One row of the desk's list: an order, or a creation without one yet.
import { html } from "./lib.js";
import { explain, useLanguage } from "./i18n.js";
import { shortId } from "./format.js";
import { choices, isGrave } from "./states.js";
import { Age, Chip } from "./parts.js";
import { RideLine } from "./ride-line.js";

// A click anywhere in the row opens the order's details; its number is the button
// that does so for everybody else.
export function OrderRow({ order, mine, move, state, card, act }) {
  const { t, f } = useLanguage();
  const id = shortId(order.id), open = (e) => e.target.closest("button, a, .row-note") || getSelection()?.isCollapsed === false || act.open(order.id);
  return html`<li class="row is-order" data-id=${order.id} data-state=${state} data-ms=${mine?.ms ?? undefined} onClick=${open}>
    <div class="c-id"><button type="button" class="open mono" title=${order.id} aria-haspopup="dialog" aria-label=${t("desk.open", { id })} onClick=${() => act.open(order.id)}>${id}</button><${Age} at=${order.created_at} /></div>
    <div class="c-items"><${Items} items=${order.items} /><small><${Where} order=${order} /></small></div>
    <div class="c-total num">${f.money(order.total ?? 0, order.currency)}</div>
    <div class="c-state"><${Chip} state=${state} pending=${move && move.status !== "refused"} /><${Timing} mine=${mine} /></div>
    <${RideLine} order=${order} card=${card} letsGo=${move?.letsGo && move.status !== "refused"} />
    <div class="c-act" role="group" aria-label=${t("row.actions", { id })}>
      <div class="steps"><${Actions} order=${order} state=${state} move=${move} act=${act} /></div><${Track} order=${order} id=${id} />
    </div>
    ${move?.status === "refused" && html`<${Refusal} order=${order} problem=${move.problem} act=${act} />`}
  </li>`;
}

export function CreationRow({ creation, act }) {
  const { t, f } = useLanguage();
  const { key, body, status, problem, at } = creation;
  const sum = body.items.reduce((n, i) => n + i.quantity * i.unit_price, 0);
  const failed = status === "failed";
  return html`<li class="row is-new ${failed ? "is-failed" : ""}" data-creation=${status}>
    <div class="c-id"><b class="mono" aria-hidden="true">······</b><${Age} at=${at} /></div>
    <div class="c-items"><${Items} items=${body.items} /><small>${t("row.to", { district: body.dropoff.district })}</small></div>
    <div class="c-total num">${f.money(sum, "BRL")}</div>
    <div class="c-state">${failed ? html`<b class="bad">${t("row.failed")}</b>` : html`<span class="muted pulse">${t("row.sending")}</span>`}</div>
    <div class="c-act">${failed && html`<div class="steps">
      <button type="button" onClick=${() => act.retry(key)}>${t("row.retry")}</button>
      <button type="button" class="quiet" onClick=${() => act.discard(key)}>${t("row.discard")}</button></div>`}
    </div>
    ${failed && html`<p class="row-note bad">${explain(t, problem)}</p>`}
  </li>`;
}

function Items({ items = [] }) {
  const { t } = useLanguage();
  const text = items.map((i) => (i.quantity > 1 ? `${i.quantity}× ${i.name}` : i.name)).join(", ");
  return html`<span class="cut" title=${text}>${text || t("list.units", { n: 0 })}</span>`;
}

function Where({ order }) {
  const { t, f } = useLanguage();
  const parts = [];
  if (order.dropoff?.district) parts.push(t("row.to", { district: order.dropoff.district }));
  if (order.promised_at) parts.push(t("row.promised", { time: f.soon(order.promised_at) }));
  return parts.join(" · ");
}

function Timing({ mine }) {
  const { t, f } = useLanguage();
  if (!mine) return null;
  if (mine.ms !== null) return html`<small class="num ok" title=${t("stat.why")}>✓ ${t("row.confirmed", { ms: f.ms(mine.ms) })}</small>`;
  return html`<small class=${mine.status === "accepted" ? "pulse" : ""}>${t(mine.status === "saved" ? "row.saved" : "row.waiting")}</small>`;
}

// Actions keeps the step forward in one button through all states, so that the
// keyboard's focus stays on it. A held key or a double click is one step.
export function Actions({ order, state, move, act }) {
  const { t } = useLanguage();
  const busy = move?.status === "sending" && !move.letsGo;
  const steps = choices(state, state === order.state ? order.allowed : undefined);
  if (!steps.length) return html`<span class="muted">${t("row.none")}</span>`;
  return steps.map((to, i) => {
    const forward = i === 0 && !isGrave(to);
    const press = (e) => e.detail > 1 || busy || act.move(order, to);
    return html`<button type="button" key=${forward ? "step" : to} data-to=${to} aria-disabled=${busy ? "true" : undefined}
      class=${forward ? "step" : isGrave(to) ? "quiet grave" : "quiet"} onClick=${press} onKeyDown=${once}>${t(`do.${to}`)}</button>`;
  });
}

function once(e) {
  if (e.repeat) e.preventDefault();
}

export function Track({ order, id }) {
  const { t } = useLanguage();
  const href = trackingPath(order);
  if (!href) return null;
  return html`<a class="track-link" href=${href} target="_blank" rel="noopener" title=${t("row.track.label", { id })} aria-label=${t("row.track.label", { id })}>
    <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden="true"><path d="M8 14.5S13 10 13 6.300a5 5 0 0 0-10 0C3 10 8 14.5 8 14.5z" /><circle cx="8" cy="6.300" r="1.700" /></svg><span>${t("row.track")}</span></a>`;
}

// trackingPath keeps the visitor on this origin: the API's absolute link may
// name a public host that this network does not reach.
function trackingPath(order) {
  if (order.tracking_token) return `/track/${encodeURIComponent(order.tracking_token)}`;
  return null;
}

export function Refusal({ order, problem, act }) {
  const { t } = useLanguage();
  const names = problem.allowed?.map((s) => t(`state.${s}`)).join(", ");
  return html`<p class="row-note"><b class="bad">${t("row.refused")}.</b> ${explain(t, problem)}
    ${names && html` · <span>${t("row.allowed", { states: names })}</span>`}
    <button type="button" class="quiet" onClick=${() => act.dismiss(order.id)}>${t("row.dismiss")}</button></p>`;
}
