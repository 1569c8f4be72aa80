// A button that copies a text. The clipboard is given to secure origins only;
// elsewhere the text is selected, which is one key away from it.
import { html, useState } from "./lib.js";
import { useLanguage } from "./i18n.js";

export function Copy({ text, from, label }) {
  const { t } = useLanguage();
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("live.copied");
    } catch {
      getSelection().selectAllChildren(from.current);
      setSaid("live.selected");
    }
  };
  return html`<span class="copy"><button type="button" data-copy aria-label=${label ? `${t("live.copy")}: ${label}` : undefined} onClick=${copy}>${t("live.copy")}</button>
    <small role="status">${said && t(said)}</small></span>`;
}
