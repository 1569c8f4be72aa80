// Asks before a step that cannot be taken back, and for its reason.
import { html, useEffect, useId, useRef, useState } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { shortId } from "./format.js";

export function Ask({ order, to, onAnswer }) {
  const { t } = useLanguage();
  const [reason, setReason] = useState("");
  const dialog = useRef(null);
  const id = useId();
  useEffect(() => dialog.current.showModal(), []);
  const submit = (e) => {
    e.preventDefault();
    onAnswer({ reason: reason.trim() });
  };
  return html`<dialog ref=${dialog} class="ask" aria-labelledby="${id}-title" onClose=${() => onAnswer(null)}>
    <form onSubmit=${submit}>
      <h2 id="${id}-title">${t("ask.title", { state: t(`do.${to}`), id: shortId(order.id) })}</h2>
      <div class="field"><label for=${id}>${t("ask.reason")}</label>
        <input id=${id} value=${reason} maxLength=${200} autocomplete="off" onInput=${(e) => setReason(e.currentTarget.value)} /></div>
      <div class="ask-foot">
        <button type="button" onClick=${() => onAnswer(null)}>${t("ask.no")}</button>
        <button class="primary danger" data-yes>${t("ask.yes")}</button>
      </div>
    </form>
  </dialog>`;
}
