// One order as its courier works on it: where to, what, and the next step under
// the thumb.
import { html, useEffect, useReducer, useState } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { instant, shortId } from "./format.js";
import { Chip } from "./parts.js";
import { DECLINE } from "./courier-model.js";
import { DeliveryCode } from "./courier-code.js";
import { Place, targetOf } from "./courier-place.js";
import { Reason } from "./courier-reason.js";
import { isLocked, refusalOf } from "./courier-words.js";

const declinable = ["ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT"];

export function JobCard({ job, act, model }) {
  const { t } = useLanguage();
  const { now, other } = targetOf(job.state);
  const offer = job.state === "ASSIGNED";
  return html`<article class="job ${offer ? "is-offer" : ""}" data-id=${job.id} data-state=${job.state} aria-label=${t("courier.order", { id: shortId(job.id) })}>
    <header><${Chip} state=${job.state} pending=${act && act.status !== "refused"} /><b class="mono">${shortId(job.id)}</b><${Eta} job=${job} /></header>
    ${offer && html`<h2>${t("courier.offer")}</h2>`}
    <${Place} job=${job} kind=${now} open />
    ${other && html`<${Place} job=${job} kind=${other} open=${offer} />`}
    <ul class="goods" aria-label=${t("form.items")}>${job.items.map((i, n) => html`<li key=${n}><b class="num">${i.quantity}×</b> ${i.name}</li>`)}</ul>
    <${Dock} job=${job} act=${act} model=${model} />
  </article>`;
}

// Eta counts down to what was said to the merchant and the customer; there is no
// time after which an offer lapses.
function Eta({ job }) {
  const { t, f } = useLanguage();
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(tick, 10_000);
    return () => clearInterval(timer);
  }, []);
  const before = declinable.includes(job.state) && job.state !== "ARRIVED_AT_MERCHANT";
  const at = before ? job.pickup_eta : (job.delivery_eta ?? job.promised_at);
  const when = instant(at);
  if (!when || ["ARRIVED_AT_CUSTOMER", "FAILED", "RETURNING"].includes(job.state)) return null;
  const left = Math.round((when.getTime() - Date.now()) / 60_000);
  return html`<span class="eta num ${left < 0 ? "bad" : ""}" title=${f.full(at)}>${t(before ? "courier.eta.pickup" : "courier.eta.dropoff", { time: f.soon(at) })} · ${left < 0 ? t("courier.eta.late", { n: -left }) : t("courier.eta.left", { n: left })}</span>`;
}

function Dock({ job, act, model }) {
  const { t } = useLanguage();
  const [asked, setAsked] = useState(null);
  const go = (to, extra) => model.act(job.id, to, extra);
  const forward = job.allowed.find((to) => to !== "FAILED");
  const under = act && act.status !== "refused";
  const answer = (reason) => {
    setAsked(null);
    if (reason !== null) go(asked, reason && { reason });
  };
  return html`<div class="dock">
    ${act?.status === "refused" && html`<p class="note bad" role="alert">${refusalOf(t, act.problem)}
      <button type="button" onClick=${() => model.dismiss(job.id)}>${t("row.dismiss")}</button></p>`}
    ${under ? html`<${Under} act=${act} onGiveUp=${() => model.dismiss(job.id)} />` : html`<${Forward} to=${forward} job=${job} locked=${isLocked(act?.problem) || job.code_locked} go=${go} />`}
    ${!under && html`<div class="dock-rest">
      ${declinable.includes(job.state) && html`<button type="button" data-to=${DECLINE} onClick=${() => setAsked(DECLINE)}>${t(`courier.do.${job.state === "ASSIGNED" ? DECLINE : "GIVE_BACK"}`)}</button>`}
      ${job.allowed.includes("FAILED") && html`<button type="button" class="grave" data-to="FAILED" onClick=${() => setAsked("FAILED")}>${t("courier.do.FAILED")}</button>`}
    </div>`}
    ${asked && html`<${Reason} to=${asked} onAnswer=${answer} />`}
  </div>`;
}

function Under({ act, onGiveUp }) {
  const { t } = useLanguage();
  const text = { sending: "courier.sending", waiting: "courier.waiting", declined: "courier.declined" }[act.status];
  return html`<p class="under" role="status" data-act=${act.status}><span class="pulse">${t(text, { step: t(`courier.do.${act.to}`) })}</span>
    ${act.status === "waiting" && html`<button type="button" onClick=${onGiveUp}>${t("courier.giveup")}</button>`}</p>`;
}

function Forward({ to, job, locked, go }) {
  const { t } = useLanguage();
  if (to === "DELIVERED") return html`<${DeliveryCode} locked=${locked} onCode=${(code) => go(to, { code })} />`;
  if (!to) return html`<p class="note">${t(job.state === "RETURNING" ? "courier.returning" : "courier.nothing")}</p>`;
  return html`<button type="button" class="primary forward" data-to=${to} onClick=${() => go(to)}>${t(`courier.do.${to}`)}</button>`;
}
