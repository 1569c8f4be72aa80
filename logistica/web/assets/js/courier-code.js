// The customer's code at the door. It is typed by the courier and never shown to
// them by the product.
import { html, useId, useState } from "./lib.js";
import { useLanguage } from "./i18n.js";

export function DeliveryCode({ locked, onCode }) {
  const { t } = useLanguage();
  const [code, setCode] = useState("");
  const id = useId();
  const submit = (e) => {
    e.preventDefault();
    onCode(code);
  };
  if (locked) return html`<button type="button" class="forward" data-to="DELIVERED" onClick=${() => onCode("")}>${t("courier.code.unlocked")}</button>`;
  return html`<form class="code" onSubmit=${submit}>
    <label for=${id}>${t("courier.code")}</label>
    <div><input id=${id} class="mono" inputmode="numeric" pattern="[0-9]{4}" maxLength=${4} autocomplete="off" required placeholder="0000"
      value=${code} onInput=${(e) => setCode(e.currentTarget.value.replace(/\D/g, ""))} />
    <button class="primary" data-to="DELIVERED" disabled=${code.length !== 4}>${t("courier.do.DELIVERED")}</button></div>
  </form>`;
}
