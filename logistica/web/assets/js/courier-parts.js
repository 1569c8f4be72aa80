// Duty, position and network: what stands above a courier's orders.
import { html } from "./lib.js";
import { explain, useLanguage } from "./i18n.js";
import { refusalOf } from "./courier-words.js";

const duties = ["AVAILABLE", "PAUSED", "OFFLINE"];

// Duty is a switch of three. While an order is theirs a courier has no choice:
// the switch then says so instead of failing at each press.
export function Duty({ model }) {
  const { t } = useLanguage();
  const { self, duty } = model;
  const bound = !duties.includes(self.state);
  const shown = duty?.status === "sending" ? duty.to : self.state;
  return html`<section class="duty" aria-label=${t("courier.duty")} data-duty=${self.state}>
    <div class="duty-switch" role="group" aria-label=${t("courier.duty")}>
      ${duties.map((state) => html`<button type="button" key=${state} data-to=${state} class="duty-${state.toLowerCase()}"
        aria-pressed=${String(state === shown || (bound && state === "AVAILABLE"))} disabled=${bound || (state !== self.state && !self.allowed.includes(state))}
        aria-busy=${duty?.status === "sending" && duty.to === state ? "true" : undefined}
        onClick=${() => state !== self.state && model.setDuty(state)}>${t(`courier.duty.${state}`)}</button>`)}
    </div>
    ${bound && html`<p class="muted">${t(`courier.bound.${self.state}`)}</p>`}
    ${duty?.status === "refused" && html`<p class="note bad" role="alert">${refusalOf(t, duty.problem)}
      <button type="button" onClick=${() => model.dismissDuty()}>${t("row.dismiss")}</button></p>`}
  </section>`;
}

export function Sharing({ share }) {
  const { t, f } = useLanguage();
  const { agreed, state, sentAt, accuracy } = share;
  const when = state === "shared" && sentAt ? t("courier.share.at", { time: f.clock(sentAt.getTime()), m: Math.round(accuracy ?? 0) }) : "";
  return html`<section class="share share-${state}" data-share=${state}>
    <div><b><i aria-hidden="true"></i><span role="status">${t(`courier.share.${state}`)}</span></b>
      <small>${when || t(`courier.share.${state}.why`)}</small></div>
    <div class="share-acts">
      ${state === "denied" && html`<button type="button" onClick=${() => share.agree(true)}>${t("list.again")}</button>`}
      <button type="button" role="switch" class="toggle" aria-checked=${String(agreed)} aria-label=${t("courier.share")}
        onClick=${() => share.agree(!agreed)}><i aria-hidden="true"></i></button>
    </div>
  </section>`;
}

// Offline says from when the page's contents are, where they may be old.
export function Offline({ model, connection }) {
  const { t, f } = useLanguage();
  const { problem, readAt } = model;
  if (!problem && connection !== "reconnecting") return null;
  const why = problem && problem.status !== 0 ? explain(t, problem) : t("courier.offline");
  return html`<p class="offline" role="status" data-offline>
    <span><b>${why}</b> ${readAt && t("courier.offline.from", { time: f.clock(readAt.getTime()) })}</span>
    <button type="button" onClick=${() => { model.kick(); model.refresh(); }}>${t("list.again")}</button></p>`;
}
