// The questions before a secret is replaced and before much is sent again, and
// the one showing of a secret.
import { html, useId, useRef, useState } from "./lib.js";
import { Copy } from "./copy.js";
import { explain, useLanguage } from "./i18n.js";
import { useModal, useOnce } from "./modal.js";

const overlaps = [86_400, 3600, 604_800, 2_592_000, 0]; // seconds; the first is offered

export function Rotate({ onAnswer }) {
  const { t } = useLanguage();
  const [overlap, setOverlap] = useState(overlaps[0]);
  const id = useId(), answer = useOnce(onAnswer);
  return html`<${Question} title=${t("hook.rotate.ask")} why=${t("hook.rotate.why")} yes=${t("hook.rotate.yes")} onYes=${() => answer({ overlap })} onNo=${() => answer(null)}>
    <div class="field"><label for=${id}>${t("hook.rotate.overlap")}</label>
      <select id=${id} value=${String(overlap)} onChange=${(e) => setOverlap(Number(e.currentTarget.value))}>
        ${overlaps.map((s) => html`<option key=${s} value=${String(s)}>${t(`hook.rotate.${s}`)}</option>`)}
      </select></div>
  <//>`;
}

export function Since({ onSend, onDone }) {
  const { t, f } = useLanguage();
  const [at, setAt] = useState(() => local(new Date(Date.now() - 3_600_000)));
  const ask = (each) => {
    const since = new Date(at);
    if (Number.isNaN(since.getTime()) || since > new Date()) return Promise.reject(t("hook.replay.since.bad"));
    return onSend({ since: since.toISOString() }, each);
  };
  const id = useId();
  return html`<${Sending} title=${t("hook.replay.since.ask")} why=${t("hook.replay.since.why")} yes=${t("hook.replay.since.yes")} ask=${ask} onDone=${onDone}>
    <div class="field"><label for=${id}>${t("hook.replay.since.label", { zone: f.zone() })}</label>
      <input id=${id} type="datetime-local" required value=${at} max=${local(new Date())} onInput=${(e) => setAt(e.currentTarget.value)} /></div>
  <//>`;
}

export function AllFailed({ n, most, onSend, onDone }) {
  const { t } = useLanguage();
  return html`<${Sending} title=${t(n >= most ? "hook.replay.failed.ask.more" : "hook.replay.failed.ask", { n })} why=${t("hook.replay.failed.why")}
    yes=${t("hook.replay.failed.yes")} ask=${(each) => onSend({ failed: true }, each)} onDone=${onDone} />`;
}

// Sending stays until all of it is on its way, and says how much that is.
function Sending({ title, why, yes, ask, onDone, children }) {
  const { t } = useLanguage();
  const [n, setN] = useState(null);
  const [problem, setProblem] = useState(null);
  const done = useOnce(onDone);
  const send = () => {
    setN(0);
    setProblem(null);
    ask(setN).then(done, (refused) => {
      setN(null);
      setProblem(refused);
    });
  };
  return html`<${Question} title=${title} why=${why} yes=${n === null ? yes : t("hook.replay.busy", { n })} busy=${n !== null} onYes=${send} onNo=${() => done(null)}>
    ${children}
    ${problem && html`<p class="bad" role="alert">${typeof problem === "string" ? problem : t("hook.do.refused", { why: explain(t, problem) })}</p>`}
  <//>`;
}

function Question({ title, why, yes, busy = false, onYes, onNo, children }) {
  const { t } = useLanguage();
  const dialog = useModal();
  const id = useId();
  const submit = (e) => {
    e.preventDefault();
    if (!busy) onYes();
  };
  return html`<dialog ref=${dialog} class="ask" aria-labelledby="${id}-title" aria-describedby="${id}-why" onClose=${onNo}>
    <form onSubmit=${submit}>
      <h2 id="${id}-title">${title}</h2>
      <p id="${id}-why" class="muted">${why}</p>
      ${children}
      <div class="ask-foot"><button type="button" onClick=${onNo}>${t("ask.no")}</button>
        <button class="primary" data-yes aria-disabled=${busy ? "true" : undefined}>${yes}</button></div>
    </form>
  </dialog>`;
}

// SecretOnce shows a secret. until says how long the one before it signs too:
// undefined if there was none, null if not at all.
export function SecretOnce({ secret, until, onDone }) {
  const { t, f } = useLanguage();
  const dialog = useModal(), done = useOnce(onDone);
  const text = useRef(null);
  const id = useId();
  return html`<dialog ref=${dialog} class="ask wide" aria-labelledby="${id}-title" aria-describedby="${id}-why" onClose=${() => done()}>
    <div class="secret">
      <h2 id="${id}-title">${t(secret.startsWith("whpk_") ? "hook.secret.title.ed25519" : "hook.secret.title")}</h2>
      <p id="${id}-why" class="muted">${t("hook.secret.why")}</p>
      <div class="secret-line"><code class="mono" ref=${text} data-secret>${secret}</code><${Copy} text=${secret} from=${text} label=${t("hook.secret.label")} /></div>
      ${until !== undefined && html`<p data-overlap>${until ? t("hook.secret.until", { time: f.full(until) }) : t("hook.secret.alone")}</p>`}
      <div class="ask-foot"><button type="button" class="primary" data-done onClick=${() => done()}>${t("hook.secret.done")}</button></div>
    </div>
  </dialog>`;
}

// local is a moment as an input of type datetime-local has it.
function local(when) {
  return new Date(when.getTime() - when.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
