// One endpoint: how it does, what may be done with it, its log, and how its calls
// are verified.
import { html, useEffect, useState } from "./lib.js";
import { Ask } from "./ask.js";
import { AllFailed, Rotate, SecretOnce, Since } from "./hook-ask.js";
import { Bars } from "./hook-bars.js";
import { Deliveries, useLog } from "./hook-deliveries.js";
import { EndpointForm } from "./hook-form.js";
import { Deaf, Moment, StateChip, Wants, Why } from "./hook-list.js";
import { latest, stateOf } from "./hook-model.js";
import { Verify } from "./hook-verify.js";
import { explain, useLanguage } from "./i18n.js";

const counted = 10_000; // the API counts no further

export function EndpointView({ endpoint: e, model, said, onLeave, children }) {
  const { t } = useLanguage();
  const view = useLog(model, e.id, said);
  const [asked, setAsked] = useState(null);
  const { log } = view, state = stateOf(e), recent = model.recent.get(e.id);
  const act = {
    ping: () => log.test(),
    edit: () => setAsked({ what: "edit" }),
    rotate: () => setAsked({ what: "rotate" }),
    enable: () => model.enable(e.id),
    retry: () => {
      document.querySelector("[data-do=ping]")?.focus(); // its own button is gone when it is called again
      model.retry(e.id);
    },
    disable: () => setAsked({ what: "disable" }),
    remove: () => setAsked({ what: "delete" }),
  };
  useEffect(() => () => model.dismiss(), []);
  return html`<nav><a class="track-link back" href="#all">‹ ${t("hook.all")}</a></nav>
    <section class="box head" aria-labelledby="endpoint-title" data-endpoint=${e.id} data-state=${state}>
      <div class="head-id"><h2 id="endpoint-title" class="mono" data-heading tabindex="-1">${e.url}</h2><span role="status"><${StateChip} state=${state} /></span></div>
      ${e.description && html`<p class="muted">${e.description}</p>`}
      ${state !== "active" && html`<p class="trouble is-${state}" data-why><${Why} endpoint=${e} state=${state} />${state === "disabled" && ` ${t("hook.why.disabled.then")}`}</p>`}
      <${Deaf} types=${e.types} />
      <${Actions} state=${state} busy=${model.busy.has(e.id)} ping=${log.ping} act=${act} />
      ${model.refused?.id === e.id && html`<p class="bad" role="alert" data-refused>${t("hook.do.refused", { why: explain(t, model.refused.problem) })}</p>`}
      <${PingResult} ping=${log.ping} state=${state} />
      <${Facts} endpoint=${e} recent=${recent} backlog=${log.backlog} />
    </section>
    <${Verify} algorithm=${e.algorithm} />
    <${Deliveries} view=${view} disabled=${state === "disabled"} until=${e.open_until} onAsk=${setAsked}>${children(log)}<//>
    ${asked && html`<${Questions} asked=${asked} setAsked=${setAsked} endpoint=${e} model=${model} log=${log} onLeave=${onLeave} />`}`;
}

function Actions({ state, busy, ping, act }) {
  const { t } = useLanguage();
  const off = state === "disabled", waits = busy ? "true" : undefined, pinging = ["asking", "waiting"].includes(ping?.status);
  const toggle = off ? "enable" : "disable";
  return html`<div class="head-acts">
    <button type="button" data-do="ping" class=${off ? "cannot" : "step"} aria-disabled=${off || pinging ? "true" : undefined} onClick=${() => off || act.ping()}>${t("hook.do.ping")}</button>
    ${state === "open" && html`<button type="button" class="step" data-do="retry" aria-disabled=${waits} onClick=${() => busy || act.retry()}>${t("hook.do.retry")}</button>`}
    <button type="button" data-do="edit" onClick=${act.edit}>${t("hook.do.edit")}</button>
    <button type="button" class=${off ? "step" : ""} data-do=${toggle} aria-disabled=${waits} onClick=${() => busy || act[toggle]()}>${t(`hook.do.${toggle}`)}</button>
    <button type="button" data-do="rotate" onClick=${act.rotate}>${t("hook.do.rotate")}</button>
    <button type="button" class="quiet grave" data-do="delete" onClick=${act.remove}>${t("hook.do.delete")}</button>
  </div>`;
}

function PingResult({ ping, state }) {
  const { t, f } = useLanguage();
  return html`<p class="ping" role="status" data-ping=${ping?.status ?? ""}>${ping && pingWords(t, f, ping, state)}</p>`;
}

function pingWords(t, f, { status, delivery, problem }, state) {
  switch (status) {
    case "refused": return html`<span class="bad">${t("hook.do.refused", { why: explain(t, problem) })}</span>`;
    case "long": return t("hook.ping.long");
    case "answered": {
      const last = delivery.log.at(-1);
      if (delivery.state === "delivered") return html`<span class="ok">${t("hook.ping.delivered", { status: String(last.status), ms: f.millis(last.ms) })}</span>`;
      return html`<span class="bad">${t(delivery.state === "pending" ? "hook.ping.failed" : "hook.ping.over", { why: attemptWords(last) })}</span>`;
    }
    default: return state === "open" ? t("hook.ping.open") : html`<span class="pulse">${t("hook.ping.wait")}</span>`;
  }
}

// attemptWords is why an attempt failed, as short as it may be told.
export const attemptWords = (attempt) => attempt?.error || String(attempt?.status ?? "");

function Facts({ endpoint: e, recent, backlog }) {
  const { t, f } = useLanguage();
  const { delivered, failed } = latest(recent);
  const count = (n) => (n === undefined ? "–" : n >= counted ? t("hook.fact.more", { n }) : f.number(n));
  const moment = (at) => (at ? html`<${Moment} at=${at} />` : html`<span class="muted">${t("hook.fact.none")}</span>`);
  return html`<dl class="facts">
    <div class="fact-bars"><dt>${t("hook.fact.recent")}</dt><dd><${Bars} deliveries=${recent} /></dd></div>
    <div><dt>${t("hook.fact.delivered")}</dt><dd>${moment(delivered)}</dd></div>
    <div><dt>${t("hook.fact.failure")}</dt><dd>${!failed && e.failing_since ? html`<${Moment} at=${e.failing_since} words="hook.fact.failing" />` : moment(failed)}</dd></div>
    <div><dt>${t("hook.fact.pending")}</dt><dd class="num" data-pending>${count(backlog?.pending)}</dd></div>
    <div><dt>${t("hook.fact.failed")}</dt><dd class="num" data-failed>${count(backlog?.failed)}</dd></div>
    <div><dt>${t("hook.fact.scheme")}</dt><dd>${e.algorithm === "hmac" ? "HMAC, v1" : "Ed25519, v1a"}</dd></div>
    <div><dt>${t("hook.fact.order")}</dt><dd>${t(e.ordered ? "hook.fact.order.yes" : "hook.fact.order.no")}</dd></div>
    <div class="fact-wide"><dt>${t("hook.fact.types")}</dt><dd><${Wants} types=${e.types} /></dd></div>
    <div><dt>${t("hook.fact.created")}</dt><dd><${Moment} at=${e.created_at} /></dd></div>
  </dl>`;
}

function Questions({ asked, setAsked, endpoint: e, model, log, onLeave }) {
  const { t } = useLanguage();
  const done = () => setAsked((now) => (now === asked ? null : now)); // a late answer does not close the next question
  const then = (act) => (given) => {
    done();
    if (given) act(given);
  };
  switch (asked.what) {
    case "edit": return html`<${EndpointForm} endpoint=${e} onSave=${(body) => model.update(e.id, body)} onDone=${done} />`;
    case "rotate": return html`<${Rotate} onAnswer=${then(async ({ overlap }) => {
      const secrets = await model.rotate(e.id, overlap);
      if (secrets) setAsked({ what: "secret", secret: secrets[0].key, until: secrets[1]?.expires_at ?? null });
    })} />`;
    case "secret": return html`<${SecretOnce} secret=${asked.secret} until=${asked.until} onDone=${done} />`;
    case "disable": return html`<${Ask} title=${t("hook.disable.ask")} why=${t("hook.disable.why")} yes=${t("hook.disable.yes")} reasoned onAnswer=${then(({ reason }) => model.disable(e.id, reason))} />`;
    case "delete": return html`<${Ask} title=${t("hook.delete.ask")} why=${t("hook.delete.why", { url: e.url })} yes=${t("hook.delete.yes")}
      onAnswer=${then(async () => {
        await log.stop();
        if (await model.remove(e.id)) onLeave();
        else log.resume();
      })} />`;
    case "since": return html`<${Since} onSend=${(what, each) => log.replay(what, each)} onDone=${done} />`;
    default: return html`<${AllFailed} n=${asked.n} most=${counted} onSend=${(what, each) => log.replay(what, each)} onDone=${done} />`;
  }
}
