// The merchant's desk: one key, one stream, one list.
import { html, render, useEffect, useMemo, useReducer, useState } from "./lib.js";
import { Api } from "./api.js";
import { Ask } from "./ask.js";
import { DeskModel } from "./desk-model.js";
import { Fleet } from "./fleet-map.js";
import { explain, LanguageSwitch, useLanguage, WithLanguage } from "./i18n.js";
import { forget, keep, KeyEntry, takeKey } from "./key.js";
import { listen } from "./stream.js";
import { OrderForm } from "./order-form.js";
import { CreationRow, OrderRow } from "./order-row.js";
import { OrderSheet } from "./order-sheet.js";
import { Brand, Connection, SkipLink, Still } from "./parts.js";
import { isGrave } from "./states.js";
import { shortId } from "./format.js";
import { StateStrip } from "./state-strip.js";
import { lagging, onFrame, throttle } from "./throttle.js";

function App() {
  const { t } = useLanguage();
  const [key, setKey] = useState(takeKey);
  const [typed, setTyped] = useState(false); // a key found needs no form while it is tried
  const [session, setSession] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    document.title = session ? `${session.name} · Waybill` : `${t("app.desk")} · Waybill`;
  }, [session, t]);
  useEffect(() => {
    const onHash = () => location.hash.includes("key=") && leave(takeKey());
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  useEffect(() => {
    if (!key) return undefined;
    let stale = false;
    new Api(key).me().then(
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
  if (!session) return html`<${SkipLink} /><${KeyEntry} problem=${problem} checking=${Boolean(key)} onKey=${enter} />`;
  return html`<${Desk} key=${session.key} session=${session} onLeave=${leave} />`;
}

// useDesk ties a model to the stream for as long as the desk is shown.
function useDesk(session) {
  const [, draw] = useReducer((n) => n + 1, 0);
  const [connection, setConnection] = useState("connecting");
  const [said, setSaid] = useState(null);
  const [problem, setProblem] = useState(null);
  const model = useMemo(() => new DeskModel(new Api(session.key), { changed: onFrame(draw), said: setSaid }), []);
  const read = useMemo(() => (how) => model.snapshot(how).then(() => setProblem(null), setProblem), []);
  useEffect(() => {
    const recount = () => model.refreshCounts().catch(() => {});
    const soon = throttle(300, recount), later = lagging(recount);
    const count = () => { soon(); later.start(); };
    const complete = throttle(1000, () => model.complete().catch(() => {}));
    const close = listen({
      url: "/v1/events",
      headers: { Authorization: `Bearer ${session.key}` },
      onConnection: setConnection,
      onSnapshot: () => { read({ lost: true }); count(); },
      onEvent: (event) => {
        if (!model.event(event)) return;
        count();
        complete();
      },
    });
    read();
    count();
    return () => {
      close();
      later.stop();
    };
  }, []);
  return { model, connection, said, problem, read };
}

function Desk({ session, onLeave }) {
  const { model, connection, said, problem, read } = useDesk(session);
  const { t } = useLanguage();
  const [asked, setAsked] = useState(null);
  const [opened, setOpened] = useState("");
  const act = useMemo(() => ({
    open: setOpened,
    move: (order, to) => (isGrave(to) ? setAsked({ order, to }) : model.move(order.id, to)),
    reassign: (order) => setAsked({ order }),
    dismiss: (id) => model.dismiss(id),
    retry: (key) => model.retry(key),
    discard: (key) => model.discard(key),
  }), []);
  const answer = (given) => {
    setAsked(null);
    if (!given) return;
    if (asked.to) model.move(asked.order.id, asked.to, given.reason);
    else model.reassign(asked.order.id);
  };
  return html`<${SkipLink} />
    <${Header} name=${session.name} faults=${session.sets_faults} connection=${connection} stats=${model.stats} onLeave=${() => onLeave()} />
    <main id="content" class="desk" tabindex="-1">
      <${Panel} onCreate=${(body) => model.create(body)} />
      <div class="desk-main">
        <${StateStrip} counts=${model.counts} filter=${model.filter} onFilter=${(s) => model.select(s).catch(() => {})} />
        <${Fleet} model=${model} onOpen=${setOpened} />
        <${List} model=${model} problem=${problem} onAgain=${() => read()} act=${act} />
      </div>
    </main>
    ${opened && html`<${OrderSheet} key=${opened} id=${opened} model=${model} act=${act} onClose=${() => setOpened("")} />`}
    ${asked && html`<${Ask} ...${question(t, asked)} onAnswer=${answer} />`}
    <${Announcer} said=${said} />`;
}

function question(t, { order, to }) {
  const id = shortId(order.id);
  if (to) return { title: t("ask.title", { state: t(`do.${to}`), id }), reasoned: true };
  return { title: t("desk.reassign.ask", { id }), why: t("desk.reassign.why"), yes: t("desk.reassign.yes") };
}

function Header({ name, faults, connection, stats, onLeave }) {
  const { t } = useLanguage();
  return html`<header class="top">
    <div class="top-id"><${Brand} /><h1>${name}</h1></div>
    <${Mean} stats=${stats} />
    <div class="top-tools"><${Connection} state=${connection} /><a class="track-link" id="figures" href="/analytics">${t("desk.figures")}</a><a class="track-link" id="webhooks" href="/webhooks">${t("hook.link")}</a>${faults && html`<a class="track-link" id="faults" href="/faults">${t("fault.link")}</a>`}<${LanguageSwitch} />
      <button type="button" class="quiet" onClick=${onLeave}>${t("key.leave")}</button></div>
  </header>`;
}

function Mean({ stats }) {
  const { t, f } = useLanguage();
  const { count, sum } = stats;
  return html`<dl class="mean" title=${t("stat.why")} data-count=${count}>
    <dt>${t("stat.title")}</dt>
    <dd>${count ? html`<b class="num" id="mean">${f.ms(sum / count)}</b> <span class="muted">${t("stat.mean")} · ${t("stat.count", { n: count })}</span>` : html`<span class="muted">${t("stat.none")}</span>`}</dd>
  </dl>`;
}

function Panel({ onCreate }) {
  const { t, language } = useLanguage();
  return html`<section class="panel" aria-labelledby="form-title"><h2 id="form-title">${t("form.title")}</h2>
    <${Still} on=${[language]} draw=${() => html`<${OrderForm} onCreate=${onCreate} />`} /></section>`;
}

function List({ model, problem, onAgain, act }) {
  const { t } = useLanguage();
  const rows = model.view();
  const waiting = model.waiting();
  return html`<section class="list" aria-labelledby="list-title">
    <h2 id="list-title" class="visually-hidden">${t("list.title")}</h2>
    <div class="row row-head" aria-hidden="true">
      ${["order", "items", "total", "state", "next"].map((c) => html`<span key=${c} class="h-${c}">${t(`list.${c}`)}</span>`)}
    </div>
    ${problem && html`<p class="row-note bad" role="alert">${t("list.failed", { why: explain(t, problem) })} <button type="button" onClick=${onAgain}>${t("list.again")}</button></p>`}
    <ol>
      ${waiting.map((c) => html`<${CreationRow} key=${c.key} creation=${c} act=${act} />`)}
      ${rows.map((row) => html`<${Row} key=${row.key} row=${row} state=${model.shownState(row.order)} act=${act} />`)}
    </ol>
    ${!rows.length && !waiting.length && html`<p class="empty">${t(model.filter ? "list.empty.state" : "list.empty")}</p>`}
    <${More} model=${model} />
  </section>`;
}

// Row is drawn anew only when its own order changed: events come by the hundred.
function Row({ row, state, act }) {
  const { language } = useLanguage();
  const { order, mine, move, card } = row;
  return html`<${Still} on=${[order, mine, move, card, state, language]}
    draw=${() => html`<${OrderRow} order=${order} mine=${mine} move=${move} card=${card} state=${state} act=${act} />`} />`;
}

function More({ model }) {
  const { t } = useLanguage();
  const [busy, setBusy] = useState(false);
  if (!model.hasMore()) return null;
  const more = () => {
    setBusy(true);
    model.more().catch(() => {}).finally(() => setBusy(false));
  };
  return html`<button type="button" class="more" disabled=${busy} onClick=${more}>${t(busy ? "app.loading" : "list.more")}</button>`;
}

// Announcer tells a screen reader what happened to the merchant's own acts, and
// nothing of the orders that merely pass by.
function Announcer({ said }) {
  const { t, f } = useLanguage();
  return html`<p class="visually-hidden" aria-live="polite" id="said">${said && sentence(said, t, f)}</p>`;
}

function sentence({ what, id, ms, to, problem }, t, f) {
  switch (what) {
    case "confirmed": return t("say.confirmed", { id: shortId(id), ms: f.ms(ms) });
    case "moved": return t("say.moved", { id: shortId(id), state: t(`state.${to}`) });
    default: return t(`say.${what}`, { why: explain(t, problem) });
  }
}

render(html`<${WithLanguage}><${App} /><//>`, document.getElementById("app"));
