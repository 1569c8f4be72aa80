// The fault panel: what is broken on purpose, and by whom.
import { html, render, useEffect, useMemo, useReducer, useState } from "./lib.js";
import { FaultApi } from "./fault-api.js";
import { FaultModel } from "./fault-model.js";
import { FaultRow } from "./fault-row.js";
import { explain, LanguageSwitch, useLanguage, WithLanguage } from "./i18n.js";
import { forget, keep, KeyEntry, takeKey } from "./key.js";
import { Brand, SkipLink } from "./parts.js";
import { onFrame } from "./throttle.js";

const every = 3000; // ms between two readings: a fault ends, and others set some

function App() {
  const [key, setKey] = useState(takeKey);
  const [problem, setProblem] = useState(null);
  const refuse = (why) => {
    if (why?.status !== 403) forget(); // one that may not set faults still opens its desk
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
  if (!key) return html`<${SkipLink} /><${KeyEntry} problem=${problem} words="fault.key" onKey=${enter} />`;
  return html`<${Panel} key=${key} secret=${key} onRefused=${refuse} />`;
}

function useFaults(secret) {
  const [, draw] = useReducer((n) => n + 1, 0);
  const [said, setSaid] = useState(null);
  const model = useMemo(() => new FaultModel(new FaultApi(secret), { changed: onFrame(draw), said: setSaid }), []);
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
  return { model, said };
}

function Panel({ secret, onRefused }) {
  const { t } = useLanguage();
  const { model, said } = useFaults(secret);
  const { faults, problem, acts } = model;
  const refused = [401, 403].includes(problem?.status);
  useEffect(() => { if (refused) onRefused(problem); }, [refused]);
  useEffect(() => { document.title = `${t("fault.title")} · Waybill`; }, [t]);
  const on = model.on().length;
  return html`<${SkipLink} />
    <header class="top"><div class="top-id"><${Brand} /><h1>${t("fault.title")}</h1></div>
      <div class="top-tools"><a class="track-link" href="/">${t("fault.desk")}</a><${LanguageSwitch} /></div></header>
    <main id="content" class="faults" tabindex="-1">
      <div class="warning" role="note"><b>${t("fault.warning")}</b> ${t("fault.warning.why")}</div>
      <div class="faults-bar"><div><b id="count" data-on=${on}>${on ? t("fault.count", { n: on }) : t("fault.count.none")}</b> <${Freshness} model=${model} /></div>
        <button type="button" id="clear-all" disabled=${!on} onClick=${() => model.clearAll()}>${t("fault.clear.all")}</button></div>
      ${problem?.status === 404 && html`<p class="empty">${t("fault.none")}</p>`}
      ${!faults && !problem && html`<p class="muted">${t("app.loading")}</p>`}
      <ol>${(faults ?? []).map((fault) => html`<${FaultRow} key=${fault.name} fault=${fault} act=${acts.get(fault.name)} model=${model} />`)}</ol>
    </main>
    <p class="visually-hidden" aria-live="polite" id="said">${said && t(`fault.say.${said.what}`, said)}</p>`;
}

function Freshness({ model }) {
  const { t, f } = useLanguage();
  const { readAt, problem } = model;
  if (problem && problem.status !== 404) return html`<small class="bad">${t("fault.old", { time: readAt ? f.clock(readAt.getTime()) : "–", why: explain(t, problem) })}</small>`;
  return readAt && html`<small>${t("fault.read", { time: f.clock(readAt.getTime()) })}</small>`;
}

render(html`<${WithLanguage}><${App} /><//>`, document.getElementById("app"));
