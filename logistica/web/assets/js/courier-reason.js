// Asks for the reason of a step that is not the way forward. The common ones are
// a tap away: a courier at a door does not type.
import { html, useEffect, useId, useRef, useState } from "./lib.js";
import { useLanguage } from "./i18n.js";

const reasons = {
  DECLINE: ["far", "vehicle", "busy"],
  FAILED: ["absent", "address", "refused", "damaged"],
};

export function Reason({ to, onAnswer }) {
  const { t } = useLanguage();
  const [reason, setReason] = useState("");
  const dialog = useRef(null);
  const id = useId();
  useEffect(() => dialog.current.showModal(), []);
  const submit = (e) => {
    e.preventDefault();
    onAnswer(reason.trim());
  };
  const must = to === "FAILED"; // the merchant has to know what to do with the goods
  return html`<dialog ref=${dialog} class="sheet" aria-labelledby="${id}-title" onClose=${() => onAnswer(null)}>
    <form onSubmit=${submit}>
      <h2 id="${id}-title">${t(`courier.why.${to}`)}</h2>
      <div class="reasons" role="group" aria-label=${t("courier.reason")}>
        ${reasons[to].map((name) => t(`courier.reason.${name}`)).map((text) => html`<button type="button" key=${text} data-reason
          aria-pressed=${String(reason === text)} onClick=${() => setReason(text)}>${text}</button>`)}
      </div>
      <label for=${id}>${t("courier.reason")}</label>
      <input id=${id} value=${reason} maxLength=${200} required=${must} autocomplete="off" onInput=${(e) => setReason(e.currentTarget.value)} />
      <small>${t("courier.reason.hint")}</small>
      <div class="sheet-foot">
        <button type="button" onClick=${() => onAnswer(null)}>${t("ask.no")}</button>
        <button class="primary danger" data-yes>${t(`courier.yes.${to}`)}</button>
      </div>
    </form>
  </dialog>`;
}
