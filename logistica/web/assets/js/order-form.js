// The form of a new order, filled with a sample so that one press creates one.
import { html, useId, useState } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { cents } from "./format.js";
import { sample } from "./sample.js";

export function OrderForm({ onCreate }) {
  const { t, f } = useLanguage();
  const [n, setN] = useState(() => Math.floor(Math.random() * 1000));
  const [draft, setDraft] = useState(() => fill(sample(n), f));
  const [touched, setTouched] = useState(false);
  const edit = (change) => {
    setTouched(true);
    setDraft((d) => ({ ...d, ...change }));
  };
  const another = () => {
    setTouched(false);
    setN(n + 1);
    setDraft(fill(sample(n + 1), f));
  };
  const submit = (e) => {
    e.preventDefault();
    onCreate(toBody(draft));
    if (!touched) another(); // what somebody typed stays theirs
  };
  return html`<form class="order-form" onSubmit=${submit} onInvalidCapture=${reveal}>
    <${Lines} draft=${draft} edit=${edit} />
    <${Place} name="pickup" draft=${draft} edit=${edit} />
    <${Place} name="dropoff" draft=${draft} edit=${edit} />
    <${Fold} title=${t("form.customer")} sum=${draft.customer.name}>
      <div class="grid-2">
        <${Field} label=${t("form.name")} value=${draft.customer.name} max=${120} onText=${(name) => edit({ customer: { ...draft.customer, name } })} />
        <${Field} label=${t("form.phone")} value=${draft.customer.phone} max=${32} type="tel" onText=${(phone) => edit({ customer: { ...draft.customer, phone } })} />
      </div>
    <//>
    <${Promised} draft=${draft} edit=${edit} />
    <div class="form-foot">
      <button class="primary" id="create">${t("form.create")}<span class="num">${f.money(total(draft), "BRL")}</span></button>
      <button type="button" id="another" onClick=${another}>${t("form.another")}</button>
    </div>
  </form>`;
}

// reveal opens the fold a refused field is in; the browser cannot point at a
// hidden one, and would refuse in silence.
function reveal(e) {
  const fold = e.target.closest("details");
  if (fold) fold.open = true;
}

function Lines({ draft, edit }) {
  const { t } = useLanguage();
  const change = (i, part) => edit({ items: draft.items.map((item, j) => (j === i ? { ...item, ...part } : item)) });
  const add = () => edit({ items: [...draft.items, { name: "", quantity: "1", price: "" }] });
  const drop = (i) => edit({ items: draft.items.filter((_, j) => j !== i) });
  return html`<fieldset class="lines">
    <legend>${t("form.items")}</legend>
    ${draft.items.map((item, i) => html`<div class="line" key=${i}>
      <${Field} label=${t("form.item")} value=${item.name} required max=${120} onText=${(name) => change(i, { name })} />
      <${Field} label=${t("form.quantity")} value=${item.quantity} required type="number" min="1" max="999" onText=${(quantity) => change(i, { quantity })} />
      <${Field} label=${t("form.price")} value=${item.price} required mode="decimal" check=${(v) => (cents(v) === null ? t("form.bad.price") : "")} onText=${(price) => change(i, { price })} />
      <button type="button" class="quiet icon" aria-label=${t("form.remove", { n: i + 1 })} disabled=${draft.items.length === 1} onClick=${() => drop(i)}>×</button>
    </div>`)}
    <button type="button" class="quiet" disabled=${draft.items.length >= 20} onClick=${add}>+ ${t("form.add")}</button>
  </fieldset>`;
}

function Place({ name, draft, edit }) {
  const { t } = useLanguage();
  const place = draft[name];
  const field = (part, more = {}) => html`<${Field} label=${t(`form.${part}`)} value=${place[part]} required max=${120} ...${more}
    onText=${(value) => edit({ [name]: { ...place, [part]: value } })} />`;
  const degrees = (limit) => ({ type: "number", step: "any", min: String(-limit), max: String(limit) });
  return html`<${Fold} title=${t(`form.${name}`)} sum=${`${place.street}, ${place.number} · ${place.district}`}>
    <div class="grid-street">${field("street")}${field("number", { max: 20 })}</div>
    <div class="grid-2">${field("cep", { pattern: "\\d{5}-?\\d{3}", mode: "numeric", max: 9 })}${field("district")}</div>
    <div class="grid-2">${field("lat", degrees(90))}${field("lng", degrees(180))}</div>
  <//>`;
}

function Promised({ draft, edit }) {
  const { t } = useLanguage();
  const id = useId();
  return html`<div class="field field-row">
    <label for=${id}>${t("form.promise")}</label>
    <select id=${id} value=${String(draft.minutes)} onChange=${(e) => edit({ minutes: Number(e.currentTarget.value) })}>
      ${[0, 30, 45, 60, 90].map((n) => html`<option value=${String(n)} key=${n}>${n ? t("form.promise.in", { n }) : t("form.promise.none")}</option>`)}
    </select>
  </div>`;
}

function Fold({ title, sum, children }) {
  return html`<details class="fold"><summary><b>${title}</b><span>${sum}</span></summary><div class="fold-body">${children}</div></details>`;
}

function Field({ label, value, onText, type = "text", mode, required = false, min, max, step, pattern, check }) {
  const id = useId();
  const input = (e) => {
    e.currentTarget.setCustomValidity(check ? check(e.currentTarget.value) : "");
    onText(e.currentTarget.value);
  };
  const bounds = type === "number" ? { min, max, step } : { maxLength: max, pattern };
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} type=${type} inputmode=${mode} value=${value} required=${required} autocomplete="off" onInput=${input} ...${bounds} /></div>`;
}

// fill makes a sample editable: text in every field.
function fill(order, f) {
  const items = order.items.map((i) => ({ name: i.name, quantity: String(i.quantity), price: f.decimal(i.unit_price) }));
  return { ...order, items };
}

function total(draft) {
  return draft.items.reduce((sum, i) => sum + (Number(i.quantity) || 0) * (cents(i.price) ?? 0), 0);
}

function toBody({ customer, pickup, dropoff, items, minutes }) {
  return {
    ...(customer.name.trim() && { customer: { name: customer.name.trim(), phone: customer.phone.trim() } }),
    pickup: toPlace(pickup),
    dropoff: toPlace(dropoff),
    items: items.map((i) => ({ name: i.name.trim(), quantity: Number(i.quantity), unit_price: cents(i.price) })),
    ...(minutes && { promised_at: new Date(Date.now() + minutes * 60_000).toISOString() }),
  };
}

function toPlace({ street, number, cep, district, lat, lng }) {
  return { street: street.trim(), number: number.trim(), cep: cep.trim(), district: district.trim(), lat: Number(lat), lng: Number(lng) };
}
