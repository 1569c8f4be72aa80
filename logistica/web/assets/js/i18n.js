// Language: chosen by the visitor, else the browser's, kept across visits.
import { createContext, html, useContext, useLayoutEffect, useMemo, useState } from "./lib.js";
import { formats } from "./format.js";
import { strings } from "./strings.js";

const kept = "waybill.language";
const tags = { en: "en", pt: "pt-BR" };

export function detect(stored, wanted) {
  if (stored in strings) return stored;
  const match = (wanted ?? []).map((tag) => tag.slice(0, 2).toLowerCase()).find((two) => two in strings);
  return match ?? "en";
}

// locale keeps the visitor's own kind of English: its dates differ.
function locale(language) {
  return navigator.languages?.find((tag) => tag.toLowerCase().startsWith(language)) ?? tags[language];
}

export function translator(language) {
  const table = strings[language];
  const plural = new Intl.PluralRules(tags[language]);
  const number = new Intl.NumberFormat(tags[language]);
  return (key, values = {}) => {
    let text = table[key] ?? key;
    if (text.includes("|")) text = text.split("|")[plural.select(values.n) === "one" ? 0 : 1];
    return text.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === "number" ? number.format(values[name]) : (values[name] ?? "")));
  };
}

// explain says what went wrong: the server's own words where it has some.
export function explain(t, problem) {
  if (problem.type?.endsWith("#outbox-full")) return t("problem.full"); // anyone may meet it, in any language
  if (problem.detail) return problem.detail;
  const known = [0, 401, 429].includes(problem.status);
  return known ? t(`problem.${problem.status}`) : problem.title || t("problem.other", { status: String(problem.status) });
}

const Language = createContext(null);

export const useLanguage = () => useContext(Language);

export function WithLanguage({ children }) {
  const [language, choose] = useState(() => detect(recall(), navigator.languages));
  const value = useMemo(() => ({ language, choose, t: translator(language), f: formats(locale(language)) }), [language]);
  useLayoutEffect(() => {
    document.documentElement.lang = tags[language];
  }, [language]);
  return html`<${Language.Provider} value=${value}>${children}<//>`;
}

export function LanguageSwitch() {
  const { language, choose, t } = useLanguage();
  const pick = (next) => {
    remember(next);
    choose(next);
  };
  return html`<div class="segmented" role="group" aria-label=${t("app.language")}>
    ${Object.keys(strings).map((code) => html`
      <button type="button" key=${code} lang=${tags[code]} aria-pressed=${String(code === language)} onClick=${() => pick(code)}>
        <abbr title=${code === "pt" ? "Português" : "English"}>${code.toUpperCase()}</abbr>
      </button>`)}
  </div>`;
}

// Storage may be refused by the browser's settings; then the choice lasts as
// long as the page.
function recall() {
  try {
    return localStorage.getItem(kept);
  } catch {
    return null;
  }
}

function remember(language) {
  try {
    localStorage.setItem(kept, language);
  } catch {
    // shown all the same
  }
}
