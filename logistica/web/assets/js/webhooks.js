// The page of webhooks: who is called about a store's orders, what came of each
// call, and the means to change that.
import { html, render, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./lib.js";
import { HookApi } from "./hook-api.js";
import { attemptWords, EndpointView } from "./hook-endpoint.js";
import { EndpointForm } from "./hook-form.js";
import { EndpointList } from "./hook-list.js";
import { HookModel } from "./hook-model.js";
import { SecretOnce } from "./hook-ask.js";
import { explain, LanguageSwitch, useLanguage, WithLanguage } from "./i18n.js";
import { forget, keep, KeyEntry, takeKey } from "./key.js";
import { Brand, SkipLink } from "./parts.js";
import { onFrame } from "./throttle.js";

const every = 3000; // ms between two readings
const share = 20; // of which a slow one is at most such a part of the time

function App() {
  const { t } = useLanguage();
  const [key, setKey] = useState(takeKey);
  const [typed, setTyped] = useState(false); // a key found needs no form while it is tried
  const [session, setSession] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => { document.title = `${t("hook.title")} · Waybill`; }, [t]);
  useEffect(() => {
    const onHash = () => location.hash.includes("key=") && leave(takeKey());
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  useEffect(() => {
    if (!key) return undefined;
    let stale = false;
    new HookApi(key).me().then(
      (merchant) => stale || (keep(key), setSession({ ...merchant, key })),
      (refused) => stale || leave("", refused),
    );
    return () => { stale = true; };
  }, [key]);
  const leave = (next = "", why = null) => {
    if (!next) forget();
    setSession(null);
    setProblem(why);
    setKey(next);
  };
  const enter = (given) => {
    setTyped(true);
    setProblem(null);
    setKey(given);
  };
  if (!session && key && !typed) return html`<main id="content" aria-busy="true" aria-label=${t("app.loading")}></main>`;
  if (!session) return html`<${SkipLink} /><${KeyEntry} problem=${problem} checking=${Boolean(key)} words="hook.key" onKey=${enter} />`;
  return html`<${Page} key=${session.key} session=${session} onLeave=${leave} />`;
}

function useHooks(session) {
  const [, draw] = useReducer((n) => n + 1, 0);
  const [said, setSaid] = useState(null);
  const model = useMemo(() => new HookModel(new HookApi(session.key), { changed: onFrame(draw), said: setSaid }), []);
  useEffect(() => attend(() => model.refresh()), []);
  return { model, said, setSaid };
}

// attend reads for as long as the page is looked at, and at once when it is looked
// at again, until what it returns is called. What takes long is read less often.
function attend(read) {
  let timer = 0, turn = 0;
  const look = async () => {
    clearTimeout(timer);
    if (document.hidden) return;
    const own = ++turn, begun = performance.now();
    await read();
    if (own === turn) timer = setTimeout(look, Math.max(every, share * (performance.now() - begun)));
  };
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    turn = Infinity;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

// useRoute is the endpoint that the address names, "" for all of them.
function useRoute() {
  const named = () => new URLSearchParams(location.hash.slice(1)).get("endpoint") ?? "";
  const [id, setId] = useState(named);
  const now = useRef(id);
  const go = (next) => {
    if (next !== named()) history.pushState(null, "", next ? `#endpoint=${next}` : location.pathname);
    now.current = next;
    setId(next);
  };
  useEffect(() => {
    const onMove = () => {
      if (location.hash === "#content") history.replaceState(null, "", now.current ? `#endpoint=${now.current}` : location.pathname); // the skip link
      else if (!location.hash.includes("key=")) go(named());
    };
    addEventListener("hashchange", onMove);
    addEventListener("popstate", onMove);
    return () => {
      removeEventListener("hashchange", onMove);
      removeEventListener("popstate", onMove);
    };
  }, []);
  return [id, go];
}

function Page({ session, onLeave }) {
  const { t } = useLanguage();
  const { model, said, setSaid } = useHooks(session);
  const [id, go] = useRoute();
  const [asked, setAsked] = useState(null);
  const refused = model.problem?.status === 401;
  useEffect(() => { if (refused) onLeave("", model.problem); }, [refused]);
  const endpoint = id && model.find(id), ready = model.endpoints !== null;
  useArrival(id, ready);
  const done = (made) => setAsked(made && { secret: made.secret, id: made.id });
  const kept = () => {
    setAsked(null);
    go(asked.id);
  };
  return html`<${SkipLink} />
    <header class="top"><div class="top-id"><${Brand} /><h1>${t("hook.title")} <span class="muted store">${session.name}</span></h1></div>
      <div class="top-tools"><a class="track-link" href="/" aria-label=${t("hook.desk.label")}>${t("hook.desk")}</a><${LanguageSwitch} />
        <button type="button" class="quiet" onClick=${() => onLeave()}>${t("key.leave")}</button></div></header>
    <main id="content" class="hooks" tabindex="-1">
      ${!ready && html`<${NotRead} problem=${model.problem} />`}
      ${ready && !id && html`<${EndpointList} model=${model} onAdd=${() => setAsked({ form: true })}><${Freshness} of=${model} /><//>`}
      ${ready && id && !endpoint && html`<nav><a class="track-link back" href="#all">‹ ${t("hook.all")}</a></nav><p class="box hook-gone" data-heading tabindex="-1">${t("hook.gone")}</p>`}
      ${ready && endpoint && html`<${EndpointView} key=${id} endpoint=${endpoint} model=${model} said=${setSaid} onLeave=${() => go("")}>${(log) => html`<${Freshness} of=${log} />`}<//>`}
    </main>
    ${asked?.form && html`<${EndpointForm} onSave=${(body) => model.create(body)} onDone=${done} />`}
    ${asked?.secret && html`<${SecretOnce} secret=${asked.secret} onDone=${kept} />`}
    <p class="visually-hidden" aria-live="polite" id="said">${said && html`<${Said} said=${said} />`}</p>`;
}

// useArrival moves the focus to what was gone to, or a keyboard and a screen
// reader would be left where nothing is any more.
function useArrival(id, ready) {
  const from = useRef(null);
  useLayoutEffect(() => {
    if (!ready) return;
    const before = from.current;
    from.current = id;
    if (before === null || before === id) return; // the page has just opened
    const link = !id && document.querySelector(`[data-endpoint="${CSS.escape(before)}"] a`);
    (link || document.querySelector("[data-heading]"))?.focus({ preventScroll: Boolean(link) });
    if (!link) scrollTo(0, 0);
  }, [id, ready]);
}

function NotRead({ problem }) {
  const { t } = useLanguage();
  if (!problem) return html`<p class="muted">${t("app.loading")}</p>`;
  if (problem.status === 404) return html`<p class="box hook-gone">${t("hook.none")}</p>`;
  return html`<p class="box hook-gone bad" role="alert">${t("hook.failed", { why: explain(t, problem) })}</p>`;
}

function Freshness({ of: { readAt, problem } }) {
  const { t, f } = useLanguage();
  if (problem) return html`<small class="bad" role="status">${t("hook.old", { time: readAt ? f.clock(readAt.getTime()) : "–", why: explain(t, problem) })}</small>`;
  return readAt && html`<small class="num" data-read=${readAt.getTime()} title=${f.full(readAt.getTime())}>${t("hook.read", { time: f.clock(readAt.getTime()) })}</small>`;
}

function Said({ said: { what, n, attempt } }) {
  const { t, f } = useLanguage();
  return t(`hook.say.${what}`, { n, status: String(attempt?.status ?? ""), ms: attempt && f.millis(attempt.ms), why: attemptWords(attempt) });
}

render(html`<${WithLanguage}><${App} /><//>`, document.getElementById("app"));
