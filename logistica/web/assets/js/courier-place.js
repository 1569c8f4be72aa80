// Where a courier goes, with a link that their own maps app opens.
import { html } from "./lib.js";
import { useLanguage } from "./i18n.js";

const toCustomer = ["PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER"];

// targetOf is the address that counts now, and the other one while it is ahead.
export function targetOf(state) {
  if (toCustomer.includes(state)) return { now: "dropoff" };
  return { now: "pickup", other: ["FAILED", "RETURNING"].includes(state) ? null : "dropoff" };
}

export function Place({ job, kind, open }) {
  const { t } = useLanguage();
  const place = job[kind];
  const call = kind === "dropoff" ? job.customer?.phone : "";
  const back = kind === "pickup" && ["FAILED", "RETURNING"].includes(job.state);
  return html`<section class="place ${open ? "" : "is-other"}" data-place=${kind}>
    <h3>${t(back ? "courier.back" : `form.${kind}`)}${kind === "dropoff" && job.customer?.name ? ` · ${job.customer.name}` : ""}</h3>
    <p><b>${place.street}, ${place.number}</b> <span>${place.district} · ${t("form.cep")} ${place.cep}</span></p>
    ${place.reference && html`<p class="muted">${place.reference}</p>`}
    ${open && html`<div class="place-acts">
      <a class="big" data-map href=${mapLink(place)}>${t("courier.map")}</a>
      ${call && html`<a class="big" data-call href=${`tel:${call.replace(/[^\d+]/g, "")}`}>${t("courier.call")}</a>`}
    </div>`}
  </section>`;
}

// mapLink leaves the choice of the app to the phone and names no host. Apple's
// phones do not know geo: (RFC 5870), others not maps:.
export function mapLink({ lat, lng, street, number }, agent = navigator.userAgent) {
  const label = encodeURIComponent(`${street}, ${number}`).replace(/[()]/g, "");
  if (/iPhone|iPad|Macintosh/.test(agent)) return `maps:?daddr=${lat},${lng}&q=${label}`;
  return `geo:${lat},${lng}?q=${lat},${lng}(${label})`;
}
