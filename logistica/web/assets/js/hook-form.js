// The form of an endpoint, new or there already. What the server refuses is said
// at its field, with what to do about it.
import { html, useEffect, useId, useRef, useState } from "./lib.js";
import { explain, useLanguage } from "./i18n.js";
import { Problem } from "./api.js";
import { Deaf } from "./hook-list.js";
import { join, orders, rest, split, typeWords } from "./hook-types.js";
import { useModal, useOnce } from "./modal.js";

const https = "https:" + "//";
const fields = ["url", "description", "types"];

export function EndpointForm({ endpoint, onSave, onDone }) {
  const { t } = useLanguage();
  const dialog = useModal(), done = useOnce(onDone);
  const [draft, setDraft] = useState(() => begin(endpoint));
  const [busy, setBusy] = useState(false);
  const [bad, setBad] = useState({}); // field -> what is wrong; form: with none of them
  const form = useRef(null);
  const id = useId();
  useEffect(() => { form.current.querySelector("[aria-invalid]")?.focus(); }, [bad]);
  const edit = (change) => setDraft((d) => ({ ...d, ...change }));
  const submit = async (e) => {
    e.preventDefault();
    if (busy) return;
    const wrong = looksWrong(t, draft);
    setBad(wrong);
    if (Object.keys(wrong).length) return;
    setBusy(true);
    try {
      const made = await onSave(toBody(draft, endpoint));
      done(made ?? true);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      setBusy(false);
      setBad(said(t, problem));
    }
  };
  return html`<dialog ref=${dialog} class="ask wide" aria-labelledby="${id}-title" onClose=${() => done(null)}>
    <form ref=${form} class="hook-form" noValidate onSubmit=${submit}>
      <h2 id="${id}-title">${t(endpoint ? "hook.form.edit" : "hook.form.new")}</h2>
      <${Text} name="url" label=${t("hook.form.url")} hint=${t("hook.form.url.hint")} bad=${bad.url} value=${draft.url} onText=${(url) => edit({ url })}
        input=${{ type: "url", placeholder: `${https}…`, maxLength: 2048, autofocus: true, required: true, class: "mono" }} />
      <${Text} name="description" label=${t("hook.form.description")} bad=${bad.description} value=${draft.description} onText=${(description) => edit({ description })} input=${{ maxLength: 500 }} />
      <${Types} draft=${draft} edit=${edit} bad=${bad.types} />
      <${Scheme} endpoint=${endpoint} draft=${draft} edit=${edit} />
      <label class="check"><input type="checkbox" name="ordered" checked=${draft.ordered} onChange=${(e) => edit({ ordered: e.currentTarget.checked })} />
        <span><b>${t("hook.form.ordered")}</b> <small>${t("hook.form.ordered.hint")}</small></span></label>
      ${bad.form && html`<p class="bad" role="alert" data-refused>${t("hook.form.refused", { why: bad.form })}</p>`}
      <div class="ask-foot"><button type="button" onClick=${() => done(null)}>${t("hook.form.no")}</button>
        <button class="primary" data-save aria-disabled=${busy ? "true" : undefined}>${t(busy ? "hook.form.busy" : endpoint ? "hook.form.save" : "hook.form.create")}</button></div>
    </form>
  </dialog>`;
}

function Text({ name, label, hint, bad, value, onText, input }) {
  const id = useId();
  const about = [hint && `${id}-hint`, bad && `${id}-bad`].filter(Boolean).join(" ");
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} name=${name} value=${value} autocomplete="off" autocapitalize="off" spellcheck=${false} ...${input}
      aria-invalid=${bad ? "true" : undefined} aria-describedby=${about || undefined} onInput=${(e) => onText(e.currentTarget.value)} />
    ${bad && html`<p id="${id}-bad" class="bad" role="alert" data-bad=${name}>${bad}</p>`}
    ${hint && html`<small id="${id}-hint">${hint}</small>`}</div>`;
}

function Types({ draft, edit, bad }) {
  const { t } = useLanguage();
  const [open] = useState(() => rest.some((type) => draft.ticked.includes(type)));
  const tick = (type, on) => edit({ ticked: on ? [...draft.ticked, type] : draft.ticked.filter((each) => each !== type) });
  const box = (type) => html`<label class="check" key=${type}><input type="checkbox" value=${type} checked=${draft.ticked.includes(type)} onChange=${(e) => tick(type, e.currentTarget.checked)} />
    <span>${typeWords(t, type)} <small class="mono">${type}</small></span></label>`;
  const chosen = rest.filter((type) => draft.ticked.includes(type)).length;
  return html`<fieldset class="types"><legend>${t("hook.form.types")} · ${t("hook.form.types.hint")}</legend>
    ${orders.map(box)}
    <details class="fold" open=${open}><summary><b>${t("hook.form.types.rest")}</b> <small>${chosen > 0 && t("hook.form.types.rest.n", { n: chosen })}</small></summary><div class="types">${rest.map(box)}</div></details>
    <${Text} name="types" label=${t("hook.form.types.more")} hint=${t("hook.form.types.more.hint")} bad=${bad} value=${draft.more} onText=${(more) => edit({ more })} input=${{ class: "mono" }} />
    <div role="status"><${Deaf} types=${join(draft)} /></div>
  </fieldset>`;
}

function Scheme({ endpoint, draft, edit }) {
  const { t } = useLanguage();
  const id = useId();
  if (endpoint) return html`<p><small>${t("hook.form.scheme")}: ${t("hook.form.scheme.fixed", { scheme: t(`hook.form.scheme.${endpoint.algorithm}`) })}</small></p>`;
  return html`<div class="field"><label for=${id}>${t("hook.form.scheme")}</label>
    <select id=${id} name="algorithm" value=${draft.algorithm} onChange=${(e) => edit({ algorithm: e.currentTarget.value })}>
      ${["hmac", "ed25519"].map((each) => html`<option key=${each} value=${each}>${t(`hook.form.scheme.${each}`)}</option>`)}
    </select></div>`;
}

function begin(endpoint) {
  const { url = "", description = "", ordered = false, algorithm = "hmac", types: chosen } = endpoint ?? {};
  return { url, description, ordered, algorithm, ...split(chosen ?? []) };
}

function toBody({ url, description, ordered, algorithm, ...chosen }, endpoint) {
  return { url: url.trim(), description: description.trim(), ordered, types: join(chosen), ...(!endpoint && { algorithm }) };
}

// looksWrong finds what needs no server to be told. Which addresses may be called
// is the server's to say.
function looksWrong(t, { url }) {
  return URL.canParse(url.trim()) ? {} : { url: t("hook.form.url.bad", { https }) };
}

// said puts the server's words at their fields, each with what helps.
function said(t, problem) {
  const bad = {};
  for (const field of fields) {
    const why = problem.at(field);
    if (why) bad[field] = `${sentence(why)} ${t(`hook.form.${field}.fix`, { https })}`;
  }
  return Object.keys(bad).length ? bad : { form: problem.fields.join(" ") || explain(t, problem) };
}

function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
