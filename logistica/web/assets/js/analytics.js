// The page of figures: a merchant's own, or an administrator's of all merchants.
import { html, render, useEffect, useMemo, useReducer, useState } from "./lib.js";
import { FiguresApi } from "./analytics-api.js";
import { FiguresModel } from "./analytics-model.js";
import { Couriers, duration, Durations, Fees, Late, Minutes, percent, States, Tenants } from "./analytics-charts.js";
import "./analytics-words.js";
import { explain, LanguageSwitch, useLanguage, WithLanguage } from "./i18n.js";
import { forget, keep, KeyEntry, takeKey } from "./key.js";
import { Brand, SkipLink } from "./parts.js";
import { listen } from "./stream.js";
import { lagging, onFrame, throttle } from "./throttle.js";

const every = 10_000; // ms between two readings, also where nothing is heard
const windows = [24, 72, 168];

function App() {
  const [key, setKey] = useState(takeKey);
  const [problem, setProblem] = useState(null);
  const refuse = (why) => {
    if (why?.status !== 403) forget(); // one that may not see figures still opens its own page
    setProblem(why);
    setKey("");
  };
  const enter = (given) => {
    keep(given);
    setProblem(null);
    setKey(given);
  };
  useEffect(() => {
    const onHash = () => location.hash.includes("key=") && enter(takeKey());
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  if (!key) return html`<${SkipLink} /><${KeyEntry} problem=${problem} words="fig.key" onKey=${enter} />`;
  return html`<${Figures} key=${key} secret=${key} onRefused=${refuse} />`;
}

// useFigures reads again when an event tells of something new, a few times more
// since the figures follow their events, and now and then in any case.
function useFigures(secret) {
  const [, draw] = useReducer((n) => n + 1, 0);
  const model = useMemo(() => new FiguresModel(new FiguresApi(secret), { changed: onFrame(draw) }), []);
  useEffect(() => {
    const look = () => document.hidden || model.refresh();
    const timer = setInterval(look, every);
    document.addEventListener("visibilitychange", look);
    model.refresh();
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  const streams = model.readAt !== null && !model.admin; // the stream is a merchant's
  useEffect(() => {
    if (!streams) return undefined;
    const soon = throttle(2000, () => model.refresh()), later = lagging(() => model.refresh(), [3000, 6000]);
    const close = listen({
      url: "/v1/events", headers: { Authorization: `Bearer ${secret}` },
      onConnection: () => {}, onSnapshot: soon, onEvent: (event) => {
        if (!event.type.startsWith("logistica.orders.")) return; // couriers on the move change no figure
        soon();
        later.start();
      },
    });
    return () => { later.stop(); close(); };
  }, [streams]);
  return model;
}

function Figures({ secret, onRefused }) {
  const { t } = useLanguage();
  const model = useFigures(secret);
  const { problem, readAt, hours } = model;
  const refused = [401, 403].includes(problem?.status);
  const desk = (readAt || problem) && !model.admin; // an administrator's key opens no desk; whose this is, the first answer says
  useEffect(() => { if (refused) onRefused(problem); }, [refused]);
  useEffect(() => { document.title = `${t("fig.title")} · Waybill`; }, [t]);
  return html`<${SkipLink} />
    <header class="top"><div class="top-id"><${Brand} /><h1>${t("fig.title")}</h1></div>
      <div class="top-tools">${desk && html`<a class="track-link" href="/">${t("fig.desk")}</a>`}<${LanguageSwitch} /></div></header>
    <main id="content" class="figures" tabindex="-1" data-read=${readAt?.getTime()}>
      <div class="figures-bar"><${Freshness} model=${model} />
        ${model.admin && html`<${Chooser} model=${model} />`}
        <div class="segmented" role="group" aria-label=${t("fig.window")}>${windows.map((n) => html`
          <button type="button" key=${n} data-hours=${n} aria-pressed=${String(n === hours)} onClick=${() => model.choose({ hours: n })}>${t(`fig.window.${n}`)}</button>`)}</div></div>
      ${!readAt && !problem && html`<p class="muted">${t("app.loading")}</p>`}
      ${readAt && html`<${Tiles} model=${model} />
        <div class="cards">
          <${Minutes} orders=${model.orders} /><${States} orders=${model.orders} />
          <${Durations} deliveries=${model.deliveries} hours=${hours} /><${Late} deliveries=${model.deliveries} hours=${hours} />
          <${Fees} fees=${model.fees} />${model.couriers && html`<${Couriers} couriers=${model.couriers} hours=${hours} />`}
          ${model.tenants && html`<${Tenants} tenants=${model.tenants} onChoose=${(tenant) => model.choose({ tenant })} />`}
        </div>`}
    </main>`;
}

function Chooser({ model }) {
  const { t } = useLanguage();
  return html`<label class="chooser"><span>${t("fig.merchant")}</span><select id="merchant" value=${model.tenant} onChange=${(e) => model.choose({ tenant: e.currentTarget.value })}>
    <option value="">${t("fig.merchant.all")}</option>
    ${(model.tenants ?? []).map((m) => html`<option key=${m.id} value=${m.id}>${m.name}</option>`)}
  </select></label>`;
}

function Tiles({ model }) {
  const { t, f, language } = useLanguage();
  const { total } = model.deliveries;
  const time = (ms) => (ms === undefined ? "–" : duration(t, ms));
  const tiles = [
    ["minute", t("fig.tile.minute"), f.number(model.orders.minutes.reduce((n, m) => n + m.created, 0))],
    ["delivered", t("fig.tile.delivered"), f.number(total.delivered)],
    ["assign", t("fig.tile.assign"), time(total.assign_p50_ms)],
    ["p50", `${t("fig.durations")}: ${t("fig.p50").toLowerCase()}`, time(total.p50_ms)],
    ["p95", `${t("fig.durations")}: ${t("fig.p95").toLowerCase()}`, time(total.p95_ms)],
    ["late", t("fig.late"), total.late_share === undefined ? "–" : percent(language, total.late_share, 1)],
  ];
  return html`<dl class="tiles">${tiles.map(([id, name, value]) => html`<div key=${id} id="tile-${id}"><dt>${name}</dt><dd class="num">${value}</dd></div>`)}</dl>`;
}

function Freshness({ model }) {
  const { t, f } = useLanguage();
  const { readAt, problem } = model;
  if (problem) return html`<small class="bad" role="status">${t("fig.old", { time: readAt ? f.clock(readAt.getTime()) : "–", why: explain(t, problem) })}</small>`;
  return html`<small>${readAt && t("fig.read", { time: f.clock(readAt.getTime()) })}</small>`;
}

render(html`<${WithLanguage}><${App} /><//>`, document.getElementById("app"));
