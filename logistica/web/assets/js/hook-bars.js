// How the latest deliveries of an endpoint went, newest at the right. Height says
// it too, not colour alone: what failed stands out, what waits is low.
import { html } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { outcome } from "./hook-model.js";

const slots = 30;
const step = 6;
const height = 24;
const tall = { failed: 24, retrying: 18, delivered: 13, pending: 6 };

export function Bars({ deliveries = [] }) {
  const { t } = useLanguage();
  const all = deliveries.slice(0, slots).map(outcome);
  const count = (...of) => all.filter((each) => of.includes(each)).length;
  const label = all.length ? t("hook.bars", { n: all.length, ok: count("delivered"), bad: count("failed"), wait: count("pending", "retrying") }) : t("hook.last.none");
  return html`<svg class="bars" role="img" aria-label=${label} viewBox="0 0 ${slots * step - 2} ${height}" width=${slots * step - 2} height=${height}>
    <title>${label}</title>
    ${Array.from({ length: slots }, (_, i) => {
    const what = all[slots - 1 - i];
    const h = tall[what] ?? 2;
    return html`<rect key=${i} class=${`bar-${what ?? "none"}`} x=${i * step} y=${height - h} width="4" height=${h} rx="1" />`;
  })}
  </svg>`;
}
