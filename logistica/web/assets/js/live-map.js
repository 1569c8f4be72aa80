// The map as pages use it. It is a picture: what it shows is said in words by
// Whereabouts, which no marker's move interrupts.
import { html, useEffect, useReducer, useRef } from "./lib.js";
import { useLanguage } from "./i18n.js";
import { age, instant } from "./format.js";
import { isPlace, metres } from "./geo.js";
import { MapView } from "./map-view.js";
import { useSeconds } from "./parts.js";

const fresh = 20_000; // ms that a position counts as now
const stale = 120_000; // ms after which its marker fades

export const ageOf = (fix) => Date.now() - (instant(fix?.fix_time)?.getTime() ?? 0);

export function LiveMap({ pickup, dropoff, position }) {
  const { t } = useLanguage();
  const box = useRef(null), marks = useRef(null), view = useRef(null);
  const [, draw] = useReducer((n) => n + 1, 0);
  useSeconds(10);
  useEffect(() => {
    view.current = new MapView(box.current, marks.current, draw);
    return () => view.current.remove();
  }, []);
  useEffect(() => {
    const places = [{ kind: "pickup", ...pickup }, { kind: "dropoff", ...dropoff }];
    view.current.setPlaces(places.filter(isPlace).map(({ kind, lat, lng }) => ({ kind, lat, lng })));
  }, [pickup?.lat, pickup?.lng, dropoff?.lat, dropoff?.lng]);
  const old = Boolean(position) && ageOf(position) > stale;
  useEffect(() => view.current.setFix(isPlace(position) ? position : null, old), [position, old]);
  const { kind, touched } = view.current ?? {};
  const button = (text, label, press, more) => html`<button type="button" class="icon" aria-label=${label} title=${label} onClick=${press} ...${more}>${text}</button>`;
  return html`<div class="map" role="group" aria-label=${t("map.title")} data-map=${kind ?? ""}>
    <div class="map-box" ref=${box} aria-hidden="true"></div>
    <div class="map-marks" ref=${marks} aria-hidden="true"></div>
    ${kind === "none" ? html`<p class="map-none">${t("map.none")}</p>` : html`<div class="map-tools">
      ${button("+", t("map.in"), () => view.current.zoom(1))}${button("−", t("map.out"), () => view.current.zoom(-1))}
      ${touched && button("◎", t("map.centre"), () => view.current.centre(), { "data-centre": true })}</div>`}
    <small class="map-credit">${t("map.credit")}${kind === "gl" ? " · MapLibre" : ""}</small>
  </div>`;
}

// Whereabouts is the map in words.
export function Whereabouts({ position, target, to }) {
  const { t, f } = useLanguage();
  useSeconds(1);
  if (!isPlace(position)) return html`<p class="whereabouts muted">${t("map.unknown")}</p>`;
  const old = ageOf(position) > fresh;
  return html`<p class="whereabouts" data-fresh=${String(!old)}>
    ${isPlace(target) && html`<b>${t(`map.to.${to}`, { way: distance(t, f, metres(position, target)) })}</b> `}
    <span class=${ageOf(position) > stale ? "bad" : "muted"}><time datetime=${position.fix_time} title=${f.full(position.fix_time)}>${
      old ? t("map.ago", { age: age(t, position.fix_time, Date.now()) }) : t("map.now")}</time></span></p>`;
}

// distance is rounded to what a position and a place of a hundred metres tell.
export function distance(t, f, m) {
  if (m < 150) return t("map.near");
  if (m < 950) return t("map.m", { n: f.number(Math.round(m / 50) * 50) });
  return t("map.km", { n: f.tenth(m / 1000) });
}
