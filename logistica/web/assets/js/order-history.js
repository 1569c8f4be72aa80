// What happened to an order: each state, when, by whom, and why where it was said.
import { html } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { instant } from "./format.js";
import { tone } from "./states.js";

// reasonOf says the search's own reasons in the visitor's language; what a
// person wrote stays as it is.
export function reasonOf(t, reason) {
  if (!reason) return "";
  const key = `reason.${reason}`, words = t(key);
  return words === key ? reason : words;
}

export function History({ order, history }) {
  const { t, f } = useLanguage();
  const all = [{ state: "CREATED", at: order.created_at, actor: "MERCHANT" }, ...history];
  return html`<section><h3>${t("desk.history")}</h3><ol class="history">${all.map(({ state, at, actor, reason }, n) => html`
    <li key=${n} data-state=${state} class="tone-${tone(state)}"><i class="dot" aria-hidden="true"></i>
      <div><span>${t(`state.${state}`)}</span> <small>${t(`actor.${actor}`)}</small>${reason && html`<small class="why">${reasonOf(t, reason)}</small>`}</div>
      <time class="num muted" datetime=${instant(at)?.toISOString()} title=${f.full(at)}>${f.clock(at)}</time></li>`)}</ol></section>`;
}
