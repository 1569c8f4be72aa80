// What an order is: who carries it and when, what it costs, what is in it, from
// where to where.
import { html, useState } from "./lib.js";
import { explain, useLanguage } from "./i18n.js";
import { Eta } from "./eta.js";
import { instant } from "./format.js";
import { nameOf } from "./ride-line.js";
import { isEnd, isOut, isReassignable, isReturning } from "./states.js";

const tries = 5; // wrong codes after which none is taken

export function Facts({ order, card, eta, onReset }) {
  const { t, f } = useLanguage();
  const out = isOut(order.state), over = isEnd(order.state), door = isReturning(order.state) ? null : eta ?? order.delivery_eta;
  return html`<dl class="facts">
    ${!over || card ? html`<div class="fact-wide"><dt>${t("desk.courier")}</dt><dd data-courier>${card ? html`<b>${nameOf(card)}</b> ${card.vehicle && html`<span class="muted">${t(`vehicle.${card.vehicle}`)}</span>`}`
      : html`<span class="muted">${t("desk.courier.none")}</span>`}</dd></div>` : null}
    ${out && isReassignable(order.state) && order.pickup_eta && html`<div><dt>${t("desk.pickup")}</dt><dd><${Expected} at=${order.pickup_eta} /></dd></div>`}
    ${out && door && html`<div data-eta><dt>${t("desk.dropoff")}</dt><dd><${Expected} at=${door} /></dd></div>`}
    ${order.promised_at && html`<div><dt>${t("track.promised")}</dt><dd><${At} at=${order.promised_at} /></dd></div>`}
    <div><dt>${t("desk.attempt")}</dt><dd class="num" data-attempt>${order.attempt ?? 1}</dd></div>
    <div><dt>${t("list.total")}</dt><dd class="num">${f.money(order.total ?? 0, order.currency)}</dd></div>
    <div><dt>${t("desk.fee")}</dt><dd class="num" data-fee>${order.fee ? f.money(order.fee.amount, order.fee.currency) : html`<span class="muted">${t("desk.fee.none")}</span>`}</dd></div>
    ${order.delivery_code && !over && html`<${Code} order=${order} onReset=${onReset} />`}
  </dl>`;
}

function Expected({ at }) {
  const { f } = useLanguage();
  return html`<${Eta} at=${at} /> <small class="num">${f.short(at)}</small>`;
}

function At({ at }) {
  const { f } = useLanguage();
  return html`<time class="num" datetime=${instant(at)?.toISOString()} title=${f.full(at)}>${f.soon(at)}</time>`;
}

// Code is what the courier needs at the door. After too many wrong ones the
// merchant lets them try again.
function Code({ order, onReset }) {
  const { t } = useLanguage();
  const [problem, setProblem] = useState(null);
  const wrong = order.delivery_code_tries ?? 0;
  return html`<div class="fact-wide"><dt>${t("desk.code")}</dt>
    <dd><b class="num sheet-code" data-code>${order.delivery_code}</b>
    ${wrong > 0 && html` <small class=${wrong >= tries ? "bad" : ""}>${wrong >= tries ? t("desk.code.locked") : t("desk.code.tries", { n: wrong })}</small>
      <button type="button" data-reset onClick=${() => onReset().then(() => setProblem(null), setProblem)}>${t("desk.code.reset")}</button>`}
    ${problem && html`<small class="bad" role="alert">${explain(t, problem)}</small>`}</dd></div>`;
}

export function Goods({ order }) {
  const { t, f } = useLanguage();
  return html`<section><h3>${t("form.items")}</h3><ul class="goods">${(order.items ?? []).map((i, n) => html`<li key=${n}>
    <span class="num muted">${i.quantity}×</span><span>${i.name}</span>${i.unit_price !== undefined && html`<span class="num muted">${f.money(i.quantity * i.unit_price, order.currency)}</span>`}</li>`)}</ul></section>`;
}

export function Places({ order }) {
  const { t } = useLanguage();
  const { name, phone } = order.customer ?? {};
  return html`<section class="places">
    <div><h3>${t("desk.from")}</h3><${Address} place=${order.pickup} /></div>
    <div><h3>${t("desk.to")}</h3><${Address} place=${order.dropoff} />
      ${name && html`<p data-customer>${name}</p>`}${phone && html`<p><a href="tel:${phone.replace(/[^+\d]/g, "")}">${phone}</a></p>`}</div>
  </section>`;
}

function Address({ place = {} }) {
  const line = [place.street, place.number].filter(Boolean).join(", ");
  return html`<p>${line || place.district}${line && html`<br /><span class="muted">${[place.district, place.cep].filter(Boolean).join(" · ")}</span>`}
    ${place.reference && html`<br /><span class="muted">${place.reference}</span>`}</p>`;
}
