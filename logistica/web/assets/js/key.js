// Where the key comes from: the address's fragment, which no server sees, then
// this tab's storage. It leaves the address bar at once, so that it is neither
// bookmarked nor shown over a shoulder.
import { html, useId, useState } from "./lib.js";
import { explain, LanguageSwitch, useLanguage } from "./i18n.js";
import { Brand } from "./parts.js";

const merchants = "waybill.key"; // where the tab keeps it; a courier's lies elsewhere

export function takeKey(slot = merchants) {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (given) {
    history.replaceState(null, "", location.pathname + location.search);
    keep(given, slot);
  }
  return given || recall(slot);
}

export function keep(key, slot = merchants) {
  try {
    sessionStorage.setItem(slot, key);
  } catch {
    // kept as long as the page
  }
}

export function forget(slot = merchants) {
  try {
    sessionStorage.removeItem(slot);
  } catch {
    // was never kept
  }
}

function recall(slot) {
  try {
    return sessionStorage.getItem(slot) ?? "";
  } catch {
    return "";
  }
}

// KeyEntry asks for a key in the words of its page.
export function KeyEntry({ problem, checking, onKey, words = "key" }) {
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
      <h1>${t(`${words}.title`)}</h1>
      <p>${t(`${words}.why`)}</p>
      <label for=${id}>${t("key.label")}</label>
      <input id=${id} class="mono" type="password" value=${key} placeholder="wb_…" autocomplete="off" autocapitalize="off"
        spellcheck=${false} required autofocus aria-invalid=${problem ? "true" : undefined} aria-describedby="${id}-bad"
        onInput=${(e) => setKey(e.currentTarget.value)} />
      <p id="${id}-bad" class="bad" role="alert">${problem && refusal(t, problem, words)}</p>
      <button class="primary" disabled=${checking}>${t(checking ? "key.checking" : `${words}.open`)}</button>
    </form>
  </main>`;
}

function refusal(t, problem, words) {
  if (problem.status === 401) return t("key.refused");
  return problem.status === 403 ? t(`${words}.other`) : explain(t, problem);
}
