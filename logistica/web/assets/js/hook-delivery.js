// One delivery in the log: how far it is, and opened, each of its attempts.
import { html, useId, useState } from "./lib.js";
import { explain, useLanguage } from "./i18n.js";
import { Moment } from "./hook-list.js";
import { nextAt, outcome, outcomeTones } from "./hook-model.js";
import { typeWords } from "./hook-types.js";

const kept = 30; // attempts in a delivery's log

export function DeliveryRow({ delivery: d, open, onOpen, resent, disabled, until, log }) {
  const { t, f } = useLanguage();
  const id = useId();
  const state = outcome(d), busy = resent === "sending", refused = resent && !busy;
  const cannot = disabled || (d.state === "pending" && !busy);
  return html`<li class="delivery ${open ? "is-open" : ""}" data-event=${d.event} data-state=${d.state}>
    <div class="delivery-head">
      <button type="button" class="delivery-open" aria-expanded=${String(open)} aria-controls="${id}-more" onClick=${onOpen}>
        <span class="chip tone-${outcomeTones[state]}"><i aria-hidden="true"></i>${t(`hook.delivery.${state}`)}</span>
        <span class="delivery-type">${typeWords(t, d.type) || d.type}</span>
        <span class="delivery-when"><${Moment} at=${d.stored_at} /></span>
        <small class="delivery-sum"><${Sum} delivery=${d} until=${until} /></small>
      </button>
      <button type="button" data-resend class=${cannot ? "cannot" : ""} aria-disabled=${cannot || busy ? "true" : undefined} title=${d.state === "pending" ? t("hook.do.resend.way") : undefined}
        aria-label="${t("hook.do.resend")}: ${typeWords(t, d.type) || d.type}, ${f.stamp(d.stored_at)}" onClick=${() => cannot || log.resend(d.event)}>${t("hook.do.resend")}</button>
    </div>
    ${refused && html`<p class="bad delivery-note" role="alert">${t("hook.do.refused", { why: explain(t, resent) })}</p>`}
    <div id="${id}-more" class="delivery-more" hidden=${!open}>${open && html`<${Attempts} delivery=${d} until=${until} /><${Body} event=${d.event} api=${log.api} />`}</div>
  </li>`;
}

function Sum({ delivery: d, until }) {
  const { t, f } = useLanguage();
  const last = d.log?.at(-1);
  const parts = [
    last && (last.status ? String(last.status) : t("hook.delivery.none")),
    last && d.state === "delivered" && f.millis(last.ms),
    d.attempts > 1 && t("hook.delivery.attempts", { n: d.attempts }),
    d.state === "pending" && d.next_at && nextOf(t, f, d, until),
  ];
  return parts.filter(Boolean).join(" · ");
}

function nextOf(t, f, d, until) {
  const at = nextAt(d, until);
  return at <= new Date() ? t("hook.delivery.next.now") : t("hook.delivery.next", { time: f.stamp(at.getTime()) });
}

function Attempts({ delivery: d, until }) {
  const { t, f } = useLanguage();
  const log = d.log ?? [];
  return html`<dl class="facts"><div><dt>${t("hook.delivery.event")}</dt><dd class="mono">${d.event}</dd></div>
      <div><dt>${t("hook.delivery.type")}</dt><dd class="mono">${d.type}</dd></div>
      <div><dt>${t("hook.delivery.stored")}</dt><dd>${f.full(d.stored_at)}</dd></div></dl>
    <h3>${t("hook.delivery.log")}</h3>
    ${!log.length && html`<p class="muted">${t("hook.delivery.log.none")}</p>`}
    ${log.length >= kept && html`<small>${t("hook.delivery.trimmed")}</small>`}
    <ol class="attempts">${log.map((a, i) => html`<${Attempt} key=${a.at + i} attempt=${a} />`)}
      ${d.state === "pending" && d.next_at && html`<li class="attempt tone-new"><i class="dot" aria-hidden="true"></i><span class="muted" data-next>${nextOf(t, f, d, until)}</span></li>`}</ol>`;
}

function Attempt({ attempt: a }) {
  const { t, f } = useLanguage();
  const ok = a.status >= 200 && a.status <= 299 && !a.error;
  return html`<li class="attempt tone-${ok ? "done" : "bad"}" data-status=${a.status ?? 0}><i class="dot" aria-hidden="true"></i>
    <div><b class=${ok ? "ok" : "bad"}>${a.status || t("hook.delivery.none")}</b> <span class="num muted">${f.millis(a.ms)}</span>
      ${a.error && html`<p>${a.error}</p>`}
      ${a.answer && html`<small>${t("hook.delivery.answer")}</small><pre class="code" tabindex="0" aria-label=${t("hook.delivery.answer")}>${a.answer}</pre>`}</div>
    <span class="muted"><${Moment} at=${a.at} /></span></li>`;
}

// Body is asked for when somebody wants to see it: it may be large.
function Body({ event, api }) {
  const { t } = useLanguage();
  const [text, setText] = useState(null);
  const [problem, setProblem] = useState(null);
  const toggle = () => (text === null
    ? api.body(event).then((b) => { setText(b.json === undefined ? b.base64 : JSON.stringify(b.json, null, 2)); setProblem(null); }, setProblem)
    : setText(null));
  return html`<button type="button" data-body aria-expanded=${String(text !== null)} onClick=${toggle}>${t(text === null ? "hook.delivery.body" : "hook.delivery.body.hide")}</button>
    ${text !== null && html`<pre class="code" tabindex="0" aria-label=${t("hook.delivery.body.label")}>${text}</pre>`}
    ${problem && html`<p class="bad" role="alert">${explain(t, problem)}</p>`}`;
}
