// Where the key comes from: the address's fragment, which no server sees, then
// this tab's storage. It leaves the address bar at once, so that it is neither
// bookmarked nor shown over a shoulder.
import { html, useId, useState } from "./lib.js";
import { explain, LanguageSwitch, useLanguage } from "./i18n.js";
import { Brand } from "./parts.js";

const slot = "waybill.key";

export function takeKey() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (given) {
    history.replaceState(null, "", location.pathname + location.search);
    keep(given);
  }
  return given || recall();
}

export function keep(key) {
  try {
    sessionStorage.setItem(slot, key);
  } catch {
    // kept as long as the page
  }
}

export function forget() {
  try {
    sessionStorage.removeItem(slot);
  } catch {
    // was never kept
  }
}

function recall() {
  try {
    return sessionStorage.getItem(slot) ?? "";
  } catch {
    return "";
  }
}

export function KeyEntry({ problem, checking, onKey }) {
  const { t } = useLanguage();
  const [key, setKey] = useState("");
  const id = useId();
  const submit = (e) => {
    e.preventDefault();
    if (key.trim()) onKey(key.trim());
  };
  return html`<main id="content" class="gate" tabindex="-1">
    <div class="gate-top"><${Brand} /><${LanguageSwitch} /></div>
    <form class="gate-form" onSubmit=${submit}>
      <h1>${t("key.title")}</h1>
      <p>${t("key.why")}</p>
      <label for=${id}>${t("key.label")}</label>
      <input id=${id} class="mono" type="password" value=${key} placeholder="wb_…" autocomplete="off" autocapitalize="off"
        spellcheck=${false} required autofocus aria-invalid=${problem ? "true" : undefined} aria-describedby="${id}-bad"
        onInput=${(e) => setKey(e.currentTarget.value)} />
      <p id="${id}-bad" class="bad" role="alert">${problem && (problem.status === 401 ? t("key.refused") : explain(t, problem))}</p>
      <button class="primary" disabled=${checking}>${t(checking ? "key.checking" : "key.open")}</button>
    </form>
  </main>`;
}
