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

const old = (fix) => ageOf(fix) > stale;

// LiveMap is one order's map.
export function LiveMap({ pickup, dropoff, position }) {
  const places = [{ kind: "pickup", ...pickup }, { kind: "dropoff", ...dropoff }].filter(isPlace);
  const fixes = isPlace(position) ? [{ id: "", fix: position, stale: old(position) }] : [];
  return html`<${Chart} places=${places.map(({ kind, lat, lng }) => ({ kind, lat, lng }))} fixes=${fixes} />`;
}

// FleetMap is the map of many orders: [{id, name, pickup, dropoff, position}].
// A place that several share is drawn once.
export function FleetMap({ rides, onPick }) {
  const places = new Map();
  for (const { id, pickup, dropoff } of rides) {
    for (const [kind, place] of [["pickup", pickup], ["dropoff", dropoff]]) {
      if (isPlace(place)) places.set(`${kind} ${place.lat} ${place.lng}`, { id, kind, lat: place.lat, lng: place.lng });
    }
  }
  const fixes = rides.filter((r) => isPlace(r.position)).map(({ id, name, position }) => ({ id, name, fix: position, stale: old(position) }));
  return html`<${Chart} places=${[...places.values()]} fixes=${fixes} calm onPick=${onPick} />`;
}

function Chart({ places, fixes, calm = false, onPick = null }) {
  const { t } = useLanguage();
  const box = useRef(null), marks = useRef(null), view = useRef(null);
  const [, draw] = useReducer((n) => n + 1, 0);
  useSeconds(10);
  useEffect(() => {
    view.current = new MapView(box.current, marks.current, { onChange: draw, onPick, calm });
    return () => view.current.remove();
  }, []);
  useEffect(() => {
    view.current.setPlaces(places);
    view.current.setFixes(fixes);
  });
  const { kind, touched } = view.current ?? {};
  const button = (text, label, press, more) => html`<button type="button" class="icon" aria-label=${label} title=${label} onClick=${press} ...${more}>${text}</button>`;
  return html`<div class="map ${calm ? "map-fleet" : ""}" role="group" aria-label=${t("map.title")} data-map=${kind ?? ""}>
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
