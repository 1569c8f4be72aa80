// When somebody is expected, as it is said to people: counted down in minutes.
import { html } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { instant } from "./format.js";
import { useSeconds } from "./parts.js";

// etaWords is a phrase for the time left at now; none where there is no estimate.
export function etaWords(t, eta, now) {
  const at = instant(eta)?.getTime();
  if (at === undefined) return "";
  const minutes = Math.ceil((at - now) / 60_000);
  if (minutes > 90) return t("eta.h", { h: Math.floor(minutes / 60), m: minutes % 60 });
  if (minutes > 1) return t("eta.min", { n: minutes });
  return t(minutes > -2 ? "eta.soon" : "eta.over");
}

export function Eta({ at }) {
  const { t, f } = useLanguage();
  useSeconds(1);
  return html`<time class="num" datetime=${instant(at)?.toISOString()} title=${f.full(at)}>${etaWords(t, at, Date.now())}</time>`;
}
