// Asks before a step that cannot be taken back, and for its reason where one is
// published with it.
import { html, useId, useState } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { useModal, useOnce } from "./modal.js";

export function Ask({ title, why = "", yes, reasoned = false, onAnswer }) {
  const { t } = useLanguage();
  const [reason, setReason] = useState("");
  const dialog = useModal(), answer = useOnce(onAnswer);
  const id = useId();
  const submit = (e) => {
    e.preventDefault();
    answer({ reason: reason.trim() });
  };
  return html`<dialog ref=${dialog} class="ask" aria-labelledby="${id}-title" onClose=${() => answer(null)}>
    <form onSubmit=${submit}>
      <h2 id="${id}-title">${title}</h2>
      ${why && html`<p class="muted">${why}</p>`}
      ${reasoned && html`<div class="field"><label for=${id}>${t("ask.reason")}</label>
        <input id=${id} value=${reason} maxLength=${200} autocomplete="off" onInput=${(e) => setReason(e.currentTarget.value)} /></div>`}
      <div class="ask-foot">
        <button type="button" onClick=${() => answer(null)}>${t("ask.no")}</button>
        <button class="primary danger" data-yes>${yes ?? t("ask.yes")}</button>
      </div>
    </form>
  </dialog>`;
}
