// How a receiver verifies calls, to be copied.
import { html, useRef, useState } from "./lib.js";
import { Copy } from "./copy.js";
import { useLanguage } from "./i18n.js";
import { snippets } from "./hook-snippets.js";

export function Verify({ algorithm }) {
  const { t } = useLanguage();
  const [chosen, choose] = useState("Python");
  const code = useRef(null);
  const text = snippets[algorithm]?.[chosen] ?? snippets.hmac[chosen];
  return html`<details class="box verify"><summary id="verify"><h2>${t("hook.verify")}</h2></summary>
    <div class="verify-body"><p>${t("hook.verify.why")}</p>
    <div class="verify-bar"><div class="segmented" role="group" aria-label=${t("hook.verify.language")}>
      ${Object.keys(snippets.hmac).map((each) => html`<button type="button" key=${each} data-language=${each} aria-pressed=${String(each === chosen)} onClick=${() => choose(each)}>${each}</button>`)}</div>
      <${Copy} text=${text} from=${code} label=${chosen} /></div>
    <pre class="code" tabindex="0" aria-label=${chosen} ref=${code}><code>${text}</code></pre>
    <p><a href="/v1/webhooks/openapi.json">${t("hook.verify.docs")}</a></p>
    </div></details>`;
}
