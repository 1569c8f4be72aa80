// One fault: what it breaks, how it is set, and the means to change that.
import { html, useId, useState } from "./lib.js";
import { explain, useLanguage } from "./i18n.js";
import { instant } from "./format.js";

const lasts = ["", "1m", "5m", "15m", "1h"];

// begin is what a control shows where the fault is off: enough to be seen.
const begin = { "%": 30, ms: 500, events: 5, switch: 1 };
const steps = { "%": 5, ms: 50, events: 1 };

export function FaultRow({ fault, act, model }) {
  const { t } = useLanguage();
  const { name, unit, max, value } = fault;
  const [wanted, setWanted] = useState(value || begin[unit] || 1);
  const [last, setLast] = useState("5m");
  const id = useId();
  const busy = act?.status === "sending";
  const submit = (e) => {
    e.preventDefault();
    model.set(name, wanted, last);
  };
  const known = t(`fault.does.${name}`);
  return html`<li class="fault ${value ? "is-on" : ""}" data-fault=${name} data-value=${value}>
    <div class="fault-head"><h2 id="${id}-name" class="mono">${name}</h2><${Standing} fault=${fault} /></div>
    <p id="${id}-does">${known === `fault.does.${name}` ? fault.does : known}</p>
    <form onSubmit=${submit} aria-labelledby="${id}-name" aria-describedby="${id}-does">
      ${unit !== "switch" && html`<div class="field fault-value"><label for="${id}-v">${t(`fault.field.${unit}`)}</label>
        <${Value} id="${id}-v" unit=${unit} max=${max} value=${wanted} onValue=${setWanted} /></div>`}
      <div class="field fault-for"><label for="${id}-for">${t("fault.for")}</label>
        <select id="${id}-for" value=${last} onChange=${(e) => setLast(e.currentTarget.value)}>
          ${lasts.map((each) => html`<option key=${each} value=${each}>${t(`fault.for.${each || "none"}`)}</option>`)}
        </select></div>
      <div class="fault-acts">
        <button class="danger" data-set aria-disabled=${busy ? "true" : undefined} aria-label=${t("fault.of", { what: t(value ? "fault.set.anew" : "fault.set"), name })}>${t(value ? "fault.set.anew" : "fault.set")}</button>
        <button type="button" data-clear disabled=${!value} onClick=${() => model.clear(name)} aria-label=${t("fault.of", { what: t("fault.clear"), name })}>${t("fault.clear")}</button>
      </div>
    </form>
    ${act?.status === "refused" && html`<p class="bad" role="alert">${t("fault.refused", { why: act.problem.fields.join(" ") || explain(t, act.problem) })}</p>`}
  </li>`;
}

function Value({ id, unit, max, value, onValue }) {
  const { t } = useLanguage();
  const take = (e) => e.currentTarget.value !== "" && onValue(Number(e.currentTarget.value));
  if (unit === "%" || unit === "ms") {
    const text = t(`fault.value.${unit}`, { n: value });
    return html`<div class="slide"><input id=${id} type="range" min=${steps[unit]} max=${max} step=${steps[unit]} value=${value} aria-valuetext=${text} onInput=${take} />
      <output for=${id} class="num">${text}</output></div>`;
  }
  return html`<input id=${id} type="number" min="1" max=${max} required value=${value} onInput=${take} />`;
}

function Standing({ fault }) {
  const { t, f } = useLanguage();
  const { unit, value, left, until, set_at: setAt, set_by: setBy } = fault;
  if (!value) return html`<span class="muted">${t("fault.off")}</span>`;
  const worth = unit === "switch" ? t("fault.on") : t(`fault.value.${unit}`, { n: value });
  const parts = [
    left !== undefined && t("fault.left", { n: left }),
    until ? t("fault.until", { time: f.clock(until) }) : t("fault.endless"),
    setAt && t("fault.since", { time: f.soon(setAt) }),
    setBy && t("fault.by", { who: setBy }),
  ];
  return html`<span class="fault-on"><b class="num">${worth}</b> <small title=${setAt && instant(setAt)?.toISOString()}>${parts.filter(Boolean).join(" · ")}</small></span>`;
}
