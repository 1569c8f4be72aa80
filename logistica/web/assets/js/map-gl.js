// The base map drawn by MapLibre GL, where the browser has WebGL.
import { readBase } from "./map-base.js";

// hasWebGL asks before a megabyte is fetched for nothing.
export function hasWebGL() {
  try {
    const context = document.createElement("canvas").getContext("webgl2");
    context?.getExtension("WEBGL_lose_context")?.loseContext();
    return context !== null;
  } catch {
    return false;
  }
}

const worker = new URL("../vendor/maplibre-gl-worker.js", import.meta.url).href;

// MapLibre starts its worker by a string, which the page's policy refuses unless
// this one names it. A browser without trusted types asks nobody.
let allowed = false;
function allowWorker() {
  if (allowed) return;
  allowed = true;
  globalThis.trustedTypes?.createPolicy("default", { createScriptURL: (url) => (url === worker ? url : null) });
}

// drawGL makes the map in box and answers when it can be seen. It throws where
// WebGL fails after all.
export async function drawGL(box, { onMove, onTouched, onLost }) {
  allowWorker();
  const [library, base] = await Promise.all([import("../vendor/maplibre-gl.js"), readBase()]);
  library.setWorkerUrl(worker);
  library.setWorkerCount(1);
  const touch = matchMedia("(pointer: coarse)").matches;
  const map = new library.Map({
    container: box, style: style(base, colours(box)), center: [-46.65, -23.56], zoom: 12, minZoom: 10, maxZoom: 17,
    attributionControl: false, dragRotate: false, pitchWithRotate: false, touchPitch: false, scrollZoom: false,
    dragPan: !touch, // one finger scrolls the page
    fadeDuration: 0, trackResize: true,
  });
  map.keyboard.disableRotation();
  map.touchZoomRotate.disableRotation();
  await new Promise((resolve, reject) => {
    map.once("load", resolve);
    map.on("error", ({ error }) => reject(error));
  }).catch((e) => { map.remove(); throw e; });
  map.on("move", onMove);
  map.on("movestart", (e) => e.originalEvent && onTouched());
  map.on("webglcontextlost", onLost);
  map.getCanvas().setAttribute("aria-hidden", "true"); // its words stand below it
  map.getCanvas().tabIndex = -1;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => map.setStyle(style(base, colours(box)));
  dark.addEventListener("change", repaint);
  return {
    kind: "gl",
    project: ({ lng, lat }) => map.project([lng, lat]),
    fit: ({ west, south, east, north }, gently) =>
      map.fitBounds([[west, south], [east, north]], { padding: padding(box), maxZoom: 15, duration: gently ? 700 : 0 }),
    zoom: (steps) => map.zoomTo(map.getZoom() + steps, { duration: 250 }),
    remove: () => {
      dark.removeEventListener("change", repaint);
      map.remove();
    },
  };
}

const padding = (box) => Math.min(64, box.clientWidth / 5, box.clientHeight / 5);

function colours(box) {
  const style = getComputedStyle(box);
  return (name) => style.getPropertyValue(`--map-${name}`).trim();
}

// style is all that is drawn. Tiles of a server, where an installation has one,
// would be a source and a layer between the land and the parks; img-src and
// connect-src of the page's policy would have to name that server.
function style(base, colour) {
  const road = (kind, width) => ({
    id: kind, type: "line", source: "base", filter: ["==", ["get", "class"], kind],
    layout: { "line-cap": "round", "line-join": "round" },
    paint: { "line-color": colour(kind), "line-width": ["interpolate", ["exponential", 1.5], ["zoom"], 11, width, 16, width * 6] },
  });
  return {
    version: 8,
    sources: { base: { type: "geojson", data: base } },
    layers: [
      { id: "land", type: "background", paint: { "background-color": colour("land") } },
      { id: "park", type: "fill", source: "base", filter: ["==", ["get", "kind"], "park"], paint: { "fill-color": colour("park") } },
      { id: "river", type: "line", source: "base", filter: ["==", ["get", "kind"], "river"],
        layout: { "line-cap": "round", "line-join": "round" },
        paint: { "line-color": colour("water"), "line-width": ["interpolate", ["exponential", 1.5], ["zoom"], 11, 4, 16, 22] } },
      road("street", 0.9), road("avenue", 1.6), road("motorway", 2.4),
    ],
  };
}
