// All that the merchant knows of one order, over the list: where it is, who has
// it, what happened to it, and what may be done.
import { html, useEffect, useRef, useState } from "./lib.js";
import { explain, useLanguage } from "./i18n.js";
import { shortId } from "./format.js";
import { LiveMap, Whereabouts } from "./live-map.js";
import { useModal } from "./modal.js";
import { Actions, Refusal, Track } from "./order-row.js";
import { Facts, Goods, Places } from "./order-facts.js";
import { History, reasonOf } from "./order-history.js";
import { Chip } from "./parts.js";
import { isOut, isReassignable, target } from "./states.js";
import { throttle } from "./throttle.js";

export function OrderSheet({ id, model, act, onClose }) {
  const { t } = useLanguage();
  const dialog = useModal();
  const { order, history, eta, problem } = useOrder(id, model);
  const outside = (e) => e.target === e.currentTarget && onClose();
  if (!order) return html`<dialog ref=${dialog} class="sheet" aria-label=${t("desk.order", { id: shortId(id) })} onClose=${onClose} onClick=${outside}>
    <div class="sheet-body"><p role="status">${problem ? html`<span class="bad">${t("desk.failed", { why: explain(t, problem) })}</span>` : t("app.loading")}</p>
    <button type="button" onClick=${onClose}>${t("desk.close")}</button></div></dialog>`;
  const move = model.moves.get(id), state = model.shownState(order), card = model.card(order);
  return html`<dialog ref=${dialog} class="sheet" aria-labelledby="sheet-title" data-order=${id} data-state=${state} onClose=${onClose} onClick=${outside}>
    <div class="sheet-body">
      <header class="sheet-top"><h2 id="sheet-title">${t("desk.order", { id: shortId(id) })}</h2>
        <span role="status"><${Chip} state=${state} pending=${move && move.status !== "refused"} /></span>
        <button type="button" class="icon quiet" data-close aria-label=${t("desk.close")} title=${t("desk.close")} onClick=${onClose}>×</button></header>
      ${problem && html`<p class="row-note bad" role="alert">${t("desk.failed", { why: explain(t, problem) })}</p>`}
      ${state === "UNASSIGNABLE" && html`<${Nobody} history=${history} />`}
      ${isOut(order.state) && html`<${Where} order=${order} position=${model.fleet.position(order)} />`}
      <${Facts} order=${order} card=${card} eta=${eta} onReset=${() => model.resetCode(id)} />
      <${Goods} order=${order} /><${Places} order=${order} />
      <${History} order=${order} history=${history} />
    </div>
    <footer class="sheet-foot">
      ${move?.status === "refused" && html`<${Refusal} order=${order} problem=${move.problem} act=${act} />`}
      <div class="steps"><${Actions} order=${order} state=${state} move=${move} act=${act} />
        ${isReassignable(state) && html`<${Reassign} order=${order} move=${move} act=${act} />`}</div>
      <${Track} order=${order} id=${shortId(id)} />
    </footer>
  </dialog>`;
}

// useOrder reads the order anew whenever its version rises, and where its
// courier is now and then: the estimate is made of that.
function useOrder(id, model) {
  const [read, setRead] = useState({ order: null, history: [], problem: null });
  const [eta, setEta] = useState(null);
  const order = model.find(id) ?? read.order;
  const again = useRef(null);
  again.current ??= throttle(300, () => model.told(id).then((told) => setRead({ ...told, problem: null }),
    (problem) => setRead((old) => ({ ...old, problem }))));
  useEffect(() => again.current(), [order?.version]);
  const out = Boolean(order?.courier) && isOut(order.state);
  useEffect(() => {
    setEta(null);
    if (!out) return undefined;
    const known = () => { // asked before that, the API has no answer
      const now = model.find(id);
      return now && model.fleet.position(now);
    };
    const ask = () => known() && model.locate(id).then(setEta, () => {});
    const first = setTimeout(ask, 300), timer = setInterval(ask, 15_000);
    return () => {
      clearTimeout(first);
      clearInterval(timer);
    };
  }, [out, order?.courier?.id]);
  return { ...read, order, eta };
}

function Where({ order, position }) {
  const { t } = useLanguage();
  const to = target(order.state);
  return html`<section class="live" aria-label=${t("live.map")}>
    <${LiveMap} pickup=${order.pickup} dropoff=${order.dropoff} position=${position} />
    <div class="live-words"><${Whereabouts} position=${position} target=${order[to]} to=${to === "dropoff" ? "customer" : to} /></div>
  </section>`;
}

function Nobody({ history }) {
  const { t } = useLanguage();
  const why = reasonOf(t, history.findLast((c) => c.state === "UNASSIGNABLE")?.reason);
  return html`<p class="nobody" data-why><b>${t("desk.none")}.</b> ${why} ${t("desk.none.what")}</p>`;
}

function Reassign({ order, move, act }) {
  const { t } = useLanguage();
  const busy = move?.status === "sending" || (move?.letsGo && move.status === "accepted");
  return html`<button type="button" class="quiet" data-reassign aria-disabled=${busy ? "true" : undefined}
    onClick=${() => busy || act.reassign(order)}>${t(busy && move.letsGo ? "desk.letting" : "desk.reassign")}</button>`;
}
