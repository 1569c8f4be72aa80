// The merchant's orders that are on the way, on one map. It comes when the first
// courier is out and stays: a list that jumps up and down is clicked wrongly.
import { html, useRef } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { FleetMap } from "./live-map.js";

export function Fleet({ model, onOpen }) {
  const { t } = useLanguage();
  const shown = useRef(false);
  const rides = model.fleet.rides().filter((o) => o.courier);
  shown.current ||= rides.length > 0;
  if (!shown.current) return null;
  const seen = rides.map((order) => ({
    id: order.id, name: firstName(model.card(order)), pickup: order.pickup, dropoff: order.dropoff, position: model.fleet.position(order),
  }));
  return html`<section class="fleet" aria-labelledby="fleet-title" data-rides=${rides.length}>
    <div class="fleet-head"><h2 id="fleet-title">${t("fleet.title")}</h2><span class="num muted">${rides.length ? t("fleet.count", { n: rides.length }) : t("fleet.none")}</span></div>
    <${FleetMap} rides=${seen} onPick=${onOpen} />
  </section>`;
}

const firstName = (card) => card?.name?.trim().split(/\s+/)[0] ?? "";
