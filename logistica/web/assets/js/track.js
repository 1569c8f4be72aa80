// The customer's tracking page: public, read only, one order behind its link.
import { html, render, useEffect, useMemo, useReducer, useRef, useState } from "./lib.js";
import { Api } from "./api.js";
import { explain, LanguageSwitch, useLanguage, WithLanguage } from "./i18n.js";
import { instant } from "./format.js";
import { CourierLine, DeliveryCode } from "./courier-card.js";
import { Eta } from "./eta.js";
import { LiveMap, Whereabouts } from "./live-map.js";
import { listen } from "./stream.js";
import { Brand, Connection, SkipLink } from "./parts.js";
import { isEnd, path, target, tone } from "./states.js";
import { ahead, done, isLate, isPosition, newer, step } from "./track-model.js";
import { throttle } from "./throttle.js";

const token = decodeURIComponent(location.pathname.split("/")[2] ?? "");

function useOrder() {
  const [order, setOrder] = useState(null);
  const [problem, setProblem] = useState(null);
  const [connection, setConnection] = useState("connecting");
  const read = useMemo(() => () => new Api().track(token).then((o) => { setOrder((old) => newer(old, o)); setProblem(null); }, setProblem), []);
  const unknown = problem?.status === 404;
  const over = unknown || (order !== null && isEnd(order.state));
  useEffect(() => { read(); }, []);
  useEffect(() => {
    if (over) return undefined;
    const again = throttle(300, read), estimate = throttle(15_000, read); // a position says nothing of when
    return listen({
      url: `/track/${encodeURIComponent(token)}/events`,
      headers: {},
      onConnection: setConnection,
      onSnapshot: () => read(),
      onEvent: (event) => { setOrder((o) => o && step(o, event)); (isPosition(event) ? estimate : again)(); },
    });
  }, [over]);
  return { order, problem, unknown, connection: over ? "ended" : connection, read };
}

function App() {
  const { t } = useLanguage();
  const { order, problem, unknown, connection, read } = useOrder();
  useEffect(() => {
    document.title = `${order ? t(`for.${order.state}`) : t("app.track")} · Waybill`;
  }, [order?.state, t]);
  return html`<${SkipLink} />
    <header class="top track-top"><${Brand} />
      <div class="top-tools">${!unknown && html`<${Connection} state=${connection} />`}<${LanguageSwitch} /></div></header>
    <main id="content" class="track" tabindex="-1">
      ${problem && html`<${Trouble} problem=${problem} unknown=${unknown} onAgain=${read} />`}
      ${!unknown && order && html`<${Order} order=${order} behind=${connection === "reconnecting"} />`}
      ${!order && !problem && html`<p class="muted">${t("app.loading")}</p>`}
    </main>`;
}

function Trouble({ problem, unknown, onAgain }) {
  const { t } = useLanguage();
  if (unknown) return html`<div class="gate-form"><h1>${t("track.unknown")}</h1><p>${t("track.unknown.why")}</p></div>`;
  return html`<p class="row-note bad" role="alert">${t("track.failed", { why: explain(t, problem) })} <button type="button" onClick=${onAgain}>${t("list.again")}</button></p>`;
}

function Order({ order, behind }) {
  const { t, f } = useLanguage();
  const late = useLate(order);
  const merchant = order.merchant?.name ?? order.merchant;
  const over = isEnd(order.state);
  return html`
    <section class="now tone-${tone(order.state)}" aria-labelledby="now">
      <p class="muted">${t("track.order")} ${merchant && t("track.from", { merchant })}</p>
      <h1 id="now" data-state=${order.state}>${t(`for.${order.state}`)}</h1>
      <${Progress} state=${order.state} />
      <dl class="facts">
        ${order.eta && !over && html`<div class="eta"><dt>${t("live.eta")}</dt><dd><${Eta} at=${order.eta} /> <small class="num">${t("eta.at", { time: f.short(order.eta) })}</small></dd></div>`}
        ${order.promised_at && html`<div><dt>${t("track.promised")}</dt><dd><${At} at=${order.promised_at} /></dd></div>`}
        <div><dt>${t("track.ordered")}</dt><dd><${At} at=${order.created_at} /></dd></div>
      </dl>
      ${late && html`<p class="late">${t("track.late")}</p>`}
      ${behind && html`<p class="late">${t("live.behind")}</p>`}
      <${Announcer} state=${order.state} />
    </section>
    ${!over && order.pickup && html`<${Live} order=${order} />`}
    ${order.delivery_code && !over && html`<${DeliveryCode} code=${order.delivery_code} />`}
    <section class="course" aria-labelledby="timeline"><h2 id="timeline">${t("track.timeline")}</h2><${Timeline} order=${order} /></section>
    ${order.items?.length > 0 && html`<section class="goods" aria-labelledby="items"><h2 id="items">${t("track.items")}</h2>
      <ul class="items">${order.items.map((i, n) => html`<li key=${n}><span class="num muted">${i.quantity}×</span> ${i.name}</li>`)}</ul></section>`}
    <p class="muted foot">${t("track.zone", { zone: f.zone() })}. ${t(over ? "track.ended" : "track.live")}</p>`;
}

// Live is the map and the same in words.
function Live({ order }) {
  const { t } = useLanguage();
  const to = target(order.state);
  return html`<section class="live" aria-labelledby="live"><h2 id="live" class="visually-hidden">${t("live.map")}</h2>
    <${LiveMap} pickup=${order.pickup} dropoff=${order.dropoff} position=${order.position} />
    <div class="live-words"><${CourierLine} courier=${order.courier} />
      ${order.courier && html`<${Whereabouts} position=${order.position} target=${order[to]} to=${to} />`}</div>
  </section>`;
}

// Progress is how far along the usual way; a detour has no such measure.
function Progress({ state }) {
  const { t } = useLanguage();
  const here = path.indexOf(state);
  if (here < 0) return null;
  const label = t("track.progress", { n: here + 1, of: path.length });
  return html`<div class="progress" role="img" aria-label=${label}>${path.map((s, i) => html`<i key=${s} class=${i <= here ? "on" : ""}></i>`)}</div>`;
}

function At({ at }) {
  const { f } = useLanguage();
  return html`<time class="num" datetime=${instant(at)?.toISOString()} title=${f.full(at)}>${f.soon(at)}</time>`;
}

function Timeline({ order }) {
  const { t, f } = useLanguage();
  const steps = done(order);
  return html`<ol class="timeline">
    ${steps.map(({ state, at }, i) => html`<li key=${state} data-step=${state} class="tone-${tone(state)} ${i === steps.length - 1 ? "is-now" : "is-done"}"
      aria-current=${i === steps.length - 1 ? "step" : undefined}>
      <span>${t(`for.${state}`)}</span><time class="num" datetime=${instant(at)?.toISOString()} title=${f.full(at)}>${f.clock(at)}</time></li>`)}
    ${ahead(order.state).map((state) => html`<li key=${state} class="is-ahead"><span>${t(`for.${state}`)}<span class="visually-hidden"> (${t("track.ahead")})</span></span></li>`)}
  </ol>`;
}

// useLate looks again every half minute: a promise passes without an event.
function useLate(order) {
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    const timer = setInterval(tick, 30_000);
    return () => clearInterval(timer);
  }, []);
  return isLate(order, Date.now());
}

// Announcer speaks on a change only, not when the page opens.
function Announcer({ state }) {
  const { t } = useLanguage();
  const first = useRef(state);
  return html`<p class="visually-hidden" aria-live="polite" id="said">${state !== first.current && t(`for.${state}`)}</p>`;
}

render(html`<${WithLanguage}><${App} /><//>`, document.getElementById("app"));
