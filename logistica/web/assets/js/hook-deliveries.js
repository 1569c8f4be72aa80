// The log of an endpoint: which deliveries, what is sent again, and the list.
import { html, useEffect, useMemo, useReducer, useRef, useState } from "./lib.js";
import { DeliveryRow } from "./hook-delivery.js";
import { HookLog } from "./hook-log.js";
import { explain, useLanguage } from "./i18n.js";
import { onFrame } from "./throttle.js";

const states = ["", "failed", "pending", "delivered"];

// useLog reads an endpoint's log whenever the endpoints were read and it is still
// among them.
export function useLog(model, id, said) {
  const [, draw] = useReducer((n) => n + 1, 0);
  const list = useRef(null);
  const open = useRef(new Set());
  const log = useMemo(() => new HookLog(model.api, id, {
    changed: onFrame(draw), said,
    holds: () => open.current.size > 0 || Boolean(list.current && (list.current.contains(document.activeElement) || list.current.getBoundingClientRect().top < 0)),
  }), [id]);
  useEffect(() => {
    model.followed = () => model.find(id) && log.refresh();
    log.refresh();
    return () => {
      model.followed = null;
      log.stop();
    };
  }, [log]);
  return { log, list, open: open.current, draw };
}

export function Deliveries({ view, disabled, until, onAsk, children }) {
  const { log, list, open, draw } = view;
  const { t, f } = useLanguage();
  const toggle = (event) => {
    if (!open.delete(event)) open.add(event);
    draw();
  };
  const select = (state) => {
    open.clear();
    log.select(state);
  };
  const failed = log.backlog?.failed ?? 0;
  const focusOn = (event) => requestAnimationFrame(() => list.current?.querySelector(`[data-event="${CSS.escape(event)}"] .delivery-open`)?.focus());
  const show = () => { // the button is gone then, and the focus would be with it
    log.show();
    focusOn(log.rows[0]);
  };
  return html`<section class="box log" aria-labelledby="log-title">
    <div class="log-head"><h2 id="log-title">${t("hook.log")}</h2> ${children}</div>
    <div class="log-bar">
      <div class="segmented" role="group" aria-label=${t("hook.log.filter")}>${states.map((s) => html`<button type="button" key=${s} data-filter=${s || "all"} aria-pressed=${String(log.filter === s)} onClick=${() => select(s)}>${t(`hook.log.${s || "all"}`)}</button>`)}</div>
      <div class="log-acts"><button type="button" id="replay-since" ...${unless(disabled)} onClick=${() => disabled || onAsk({ what: "since" })}>${t("hook.replay.since")}</button>
        <button type="button" id="replay-failed" ...${unless(disabled || !failed)} onClick=${() => disabled || !failed || onAsk({ what: "failed", n: failed })}>${t("hook.replay.failed")}</button></div>
    </div>
    ${log.fresh.length > 0 && html`<button type="button" class="fresh" onClick=${show}>${t("hook.log.fresh", { n: log.fresh.length })}</button>`}
    ${log.rows === null && html`<p class="log-note muted">${log.problem ? explain(t, log.problem) : t("app.loading")}</p>`}
    ${log.rows?.length === 0 && html`<p class="log-note muted">${t(log.filter ? "hook.log.none.state" : "hook.log.none")}</p>`}
    <ol ref=${list} class="deliveries" aria-labelledby="log-title">${(log.rows ?? []).map((event) => html`<${DeliveryRow} key=${event} delivery=${log.known.get(event)} log=${log}
      open=${open.has(event)} onOpen=${() => toggle(event)} resent=${log.resent.get(event)} disabled=${disabled} until=${until} />`)}</ol>
    ${log.more && html`<${Earlier} log=${log} onLast=${focusOn} />`}
    <p class="log-note"><small>${t("track.zone", { zone: f.zone() })}</small></p>
  </section>`;
}

// unless keeps a button that cannot be pressed in the order of the keyboard: one
// that is disabled while it has the focus loses it.
const unless = (cannot) => (cannot ? { class: "cannot", "aria-disabled": "true" } : {});

function Earlier({ log, onLast }) {
  const { t } = useLanguage();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const ask = () => {
    setBusy(true);
    log.earlier().then((first) => {
      setProblem(null);
      if (first && !log.more) onLast(first);
    }, setProblem).finally(() => setBusy(false));
  };
  return html`${problem && html`<p class="log-note bad" role="alert">${explain(t, problem)}</p>`}
    <button type="button" class="more" aria-disabled=${busy ? "true" : undefined} onClick=${() => busy || ask()}>${t(busy ? "app.loading" : "hook.log.more")}</button>`;
}
