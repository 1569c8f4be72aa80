// Who carries an order and when, or that somebody is looked for: one line of a row.
import { html } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { Eta } from "./eta.js";
import { shortId } from "./format.js";
import { isEnd, isOut, isReturning, target } from "./states.js";

export const nameOf = (card) => card?.name || (card?.id ? shortId(card.id) : "");

export function RideLine({ order, card, letsGo }) {
  const { t } = useLanguage();
  if (isEnd(order.state)) return null;
  const attempt = order.attempt > 1 ? html` · <span data-attempt=${order.attempt}>${t("search.attempt", { n: order.attempt })}</span>` : null;
  return html`<small class="ride" data-courier=${card?.name}>${letsGo ? t("desk.letting") : html`<${What} order=${order} card=${card} />`}${attempt}</small>`;
}

function What({ order, card }) {
  const { t } = useLanguage();
  if (order.state === "UNASSIGNABLE") return html`<span class="bad">${t("search.none")}</span>`;
  if (!isOut(order.state)) return t(order.attempt > 1 ? "search.again" : "search.looking");
  return html`<b>${nameOf(card) || t("desk.courier")}</b><${When} order=${order} />`;
}

// When is the next place the courier is expected at.
function When({ order }) {
  const { t } = useLanguage();
  if (isReturning(order.state)) return html` · ${t("search.back")}`;
  const to = target(order.state), at = to === "pickup" ? order.pickup_eta : order.delivery_eta;
  if (!at || order.state.startsWith("ARRIVED")) return null;
  const [before, after] = t(`search.${to}`, { eta: "\u0000" }).split("\u0000");
  return html` · ${before}<${Eta} at=${at} />${after}`;
}
