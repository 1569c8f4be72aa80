// The courier's page: one key, one phone, one hand.
import { html, render, useEffect, useMemo, useReducer, useState } from "./lib.js";
import { CourierApi } from "./courier-api.js";
import { CourierModel } from "./courier-model.js";
import { PositionShare } from "./courier-position.js";
import { Duty, Offline, Sharing } from "./courier-parts.js";
import { JobCard } from "./courier-job.js";
import { refusalOf } from "./courier-words.js";
import { explain, LanguageSwitch, useLanguage, WithLanguage } from "./i18n.js";
import { forget, keep, KeyEntry, takeKey } from "./key.js";
import { Brand, Connection, SkipLink } from "./parts.js";
import { lagging, onFrame, throttle } from "./throttle.js";
import { listen } from "./stream.js";

const slot = "waybill.courier.key";
const reread = 20_000; // ms: a merchant may move an order without a call to its courier

function App() {
  const [key, setKey] = useState(() => takeKey(slot));
  const [problem, setProblem] = useState(null);
  const leave = (why = null) => {
    forget(slot);
    setProblem(why);
    setKey("");
  };
  const enter = (given) => {
    keep(given, slot);
    setProblem(null);
    setKey(given);
  };
  useEffect(() => {
    const onHash = () => location.hash.includes("key=") && enter(takeKey(slot));
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  if (!key) return html`<${SkipLink} /><${KeyEntry} problem=${problem} words="courier.key" onKey=${enter} />`;
  return html`<${Shift} key=${key} secret=${key} onLeave=${leave} />`;
}

// useShift ties the model to the stream, the network and the clock for as long
// as the page is shown.
function useShift(secret) {
  const [, draw] = useReducer((n) => n + 1, 0);
  const [connection, setConnection] = useState("connecting");
  const [said, setSaid] = useState(null);
  const { model, share } = useMemo(() => {
    const api = new CourierApi(secret), changed = onFrame(draw);
    const share = new PositionShare((batch) => api.positions(batch), { changed });
    const model = new CourierModel(api, { said: setSaid, changed: () => { share.duty(onDuty(model.self)); changed(); } });
    return { model, share };
  }, []);
  useEffect(() => {
    const read = () => model.refresh();
    const soon = throttle(300, read), later = lagging(read, [700, 2000, 5000]);
    const back = () => { model.kick(); soon(); };
    const close = listen({
      url: "/v1/courier/events",
      headers: { Authorization: `Bearer ${secret}` },
      onConnection: (word) => { setConnection(word); if (word === "live") back(); },
      onSnapshot: back,
      // What a call is about may reach the order a moment after the call itself.
      onEvent: () => { soon(); later.start(); },
    });
    const timer = setInterval(() => document.hidden || read(), reread);
    addEventListener("online", back);
    read();
    return () => {
      close();
      later.stop();
      clearInterval(timer);
      removeEventListener("online", back);
      share.stop();
    };
  }, []);
  return { model, share, connection, said };
}

const onDuty = (self) => ["AVAILABLE", "RESERVED", "BUSY"].includes(self?.state);

function Shift({ secret, onLeave }) {
  const { t } = useLanguage();
  const { model, share, connection, said } = useShift(secret);
  const { self, problem } = model;
  const refused = [401, 403].includes(problem?.status);
  const offers = model.jobs.filter((j) => j.state === "ASSIGNED");
  useEffect(() => { if (refused) onLeave(problem); }, [refused]);
  useEffect(() => {
    document.title = `${offers.length ? `(${offers.length}) ` : ""}${self?.name ?? t("courier.title")} · Waybill`;
  }, [self?.name, offers.length, t]);
  useEffect(() => {
    if (said?.what === "offer" && navigator.userActivation?.hasBeenActive) navigator.vibrate?.([200, 100, 200]);
  }, [said]);
  return html`<${SkipLink} />
    <header class="top courier-top">
      <div class="top-id"><${Brand} /><h1>${self?.name ?? t("courier.title")}</h1></div>
      <div class="top-tools"><${Connection} state=${connection} /><${LanguageSwitch} />
        <button type="button" class="quiet" onClick=${() => onLeave()}>${t("courier.leave")}</button></div>
    </header>
    <main id="content" class="courier" tabindex="-1">
      <${Offline} model=${model} connection=${connection} />
      ${self && html`<${Duty} model=${model} /><${Sharing} share=${share} />
        <${Jobs} model=${model} />`}
      ${!self && !problem && html`<p class="muted">${t("app.loading")}</p>`}
    </main>
    <${Announcer} said=${said} />`;
}

function Jobs({ model }) {
  const { t } = useLanguage();
  const { self, jobs, acts } = model;
  const gone = [...acts].filter(([id, act]) => act.status === "refused" && !model.job(id));
  return html`<section class="jobs" aria-label=${t("courier.jobs")}>
    ${gone.map(([id]) => html`<p key=${id} class="note" role="alert">${t("courier.gone")}
      <button type="button" onClick=${() => model.dismiss(id)}>${t("row.dismiss")}</button></p>`)}
    ${jobs.map((job) => html`<${JobCard} key=${job.id} job=${job} act=${acts.get(job.id)} model=${model} />`)}
    ${!jobs.length && html`<div class="idle"><h2>${t(`courier.idle.${self.state}`)}</h2><p>${t(`courier.idle.${self.state}.why`)}</p></div>`}
  </section>`;
}

function Announcer({ said }) {
  const { t } = useLanguage();
  return html`<p class="visually-hidden" aria-live="assertive" id="said">${said && sentence(said, t)}</p>`;
}

function sentence({ what, state, to, problem }, t) {
  switch (what) {
    case "offer": return t("courier.say.offer");
    case "duty": return t(`courier.duty.${state}`);
    case "done": return t("courier.say.done", { step: t(`courier.do.${to}`) });
    default: return refusalOf(t, problem) ?? explain(t, problem);
  }
}

render(html`<${WithLanguage}><${App} /><//>`, document.getElementById("app"));
