// The base map drawn as SVG from the same streets: for browsers without WebGL.
// It zooms in steps and is dragged with a mouse; one finger scrolls the page.
import { flat } from "./geo.js";
import { readBase } from "./map-base.js";

const grain = 1e6; // units of the drawing in one width of the world
const least = 2 ** 10 * 256, most = 2 ** 17 * 256; // px in one width of the world
const name = "http://www.w3.org/2000/svg";

export async function drawSVG(box, { onMove, onTouched }) {
  const base = await readBase();
  const origin = flat({ lat: -23.56, lng: -46.65 });
  const svg = document.createElementNS(name, "svg"), sheet = document.createElementNS(name, "g");
  svg.setAttribute("class", "map-sheet");
  svg.setAttribute("aria-hidden", "true");
  for (const f of inOrder(base.features)) sheet.append(shape(f, origin));
  svg.append(sheet);
  box.append(svg);

  let centre = origin, scale = 2 ** 13 * 256; // px in one width of the world
  const place = () => {
    const k = scale / grain;
    const x = box.clientWidth / 2 - (centre.x - origin.x) * scale, y = box.clientHeight / 2 - (centre.y - origin.y) * scale;
    sheet.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
    svg.style.setProperty("--wide", String(Math.min(3, Math.max(0.8, Math.sqrt(scale / (2 ** 13.5 * 256))))));
    onMove();
  };
  const grown = new ResizeObserver(place);
  grown.observe(box);
  const undrag = drag(svg, (dx, dy) => {
    centre = { x: centre.x - dx / scale, y: centre.y - dy / scale };
    onTouched();
    place();
  });
  return {
    kind: "svg",
    project: (p) => {
      const { x, y } = flat(p);
      return { x: box.clientWidth / 2 + (x - centre.x) * scale, y: box.clientHeight / 2 + (y - centre.y) * scale };
    },
    fit: ({ west, south, east, north }) => {
      const a = flat({ lat: north, lng: west }), b = flat({ lat: south, lng: east });
      centre = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
      const room = (px) => Math.max(px - Math.min(128, px * 0.4), 20);
      scale = Math.min(2 ** 15 * 256, room(box.clientWidth) / Math.max(b.x - a.x, 1e-9), room(box.clientHeight) / Math.max(b.y - a.y, 1e-9));
      place();
    },
    zoom: (steps) => {
      scale = Math.min(most, Math.max(least, scale * 2 ** steps));
      place();
    },
    remove: () => {
      grown.disconnect();
      undrag();
      svg.remove();
    },
  };
}

// inOrder draws what is wide first.
const layers = ["park", "river", "street", "avenue", "motorway"];
const layerOf = ({ properties }) => layers.indexOf(properties.class ?? properties.kind);
const inOrder = (features) => features.filter((f) => layerOf(f) >= 0).sort((a, b) => layerOf(a) - layerOf(b));

function shape({ geometry, properties }, origin) {
  const path = document.createElementNS(name, "path");
  path.setAttribute("class", `map-${properties.class ?? properties.kind}`);
  path.setAttribute("d", lines(geometry).map((line) => `M${line.map(([lng, lat]) => {
    const { x, y } = flat({ lat, lng });
    return `${((x - origin.x) * grain).toFixed(2)} ${((y - origin.y) * grain).toFixed(2)}`;
  }).join("L")}`).join(""));
  return path;
}

function lines({ type, coordinates }) {
  switch (type) {
    case "LineString": return [coordinates];
    case "Polygon": case "MultiLineString": return coordinates;
    default: return [];
  }
}

// drag follows a mouse's button and returns what ends it.
function drag(svg, onDrag) {
  const down = (e) => {
    if (e.pointerType === "mouse" && e.button === 0) svg.setPointerCapture(e.pointerId);
  };
  const move = (e) => {
    if (svg.hasPointerCapture(e.pointerId)) onDrag(e.movementX, e.movementY);
  };
  svg.addEventListener("pointerdown", down);
  svg.addEventListener("pointermove", move);
  return () => {
    svg.removeEventListener("pointerdown", down);
    svg.removeEventListener("pointermove", move);
  };
}
