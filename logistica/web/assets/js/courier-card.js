// The courier and the delivery code, as the customer sees them.
import { html, useRef, useState } from "./lib.js";
import { useLanguage } from "./i18n.js";

export function CourierLine({ courier }) {
  const { t } = useLanguage();
  if (!courier?.first_name) return null;
  return html`<p class="who"><span class="muted">${t("live.courier")}</span> <b>${courier.first_name}</b>
    ${courier.vehicle && html` <span class="muted">${t(`vehicle.${courier.vehicle}`)}</span>`}</p>`;
}

export function DeliveryCode({ code }) {
  const { t } = useLanguage();
  const [said, setSaid] = useState("");
  const digits = useRef(null);
  // The clipboard is given to secure origins only; elsewhere the code is
  // selected, which is one key away from it.
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code);
      setSaid("live.copied");
    } catch {
      getSelection().selectAllChildren(digits.current);
      setSaid("live.selected");
    }
  };
  return html`<section class="code" aria-labelledby="code"><div><h2 id="code">${t("live.code")}</h2>
    <p class="code-digits num" ref=${digits} data-code>${code}</p></div>
    <div class="code-copy"><button type="button" onClick=${copy} data-copy>${t("live.copy")}</button><span class="muted" role="status">${said && t(said)}</span></div>
    <p class="muted code-why">${t("live.code.why")}</p></section>`;
}
