// Places on the ground: a place is {lat, lng} in degrees.

const rad = Math.PI / 180;
const earth = 6_371_000; // metres

// metres between two places, as the crow flies.
export function metres(a, b) {
  const h = Math.sin(((b.lat - a.lat) * rad) / 2) ** 2
    + Math.cos(a.lat * rad) * Math.cos(b.lat * rad) * Math.sin(((b.lng - a.lng) * rad) / 2) ** 2;
  return 2 * earth * Math.asin(Math.sqrt(h));
}

// bearing from a to b, in degrees clockwise from north.
export function bearing(a, b) {
  const turn = (b.lng - a.lng) * rad;
  const y = Math.sin(turn) * Math.cos(b.lat * rad);
  const x = Math.cos(a.lat * rad) * Math.sin(b.lat * rad) - Math.sin(a.lat * rad) * Math.cos(b.lat * rad) * Math.cos(turn);
  return (Math.atan2(y, x) / rad + 360) % 360;
}

// flat is a place on the unit square of the web's maps (Mercator): x to the
// east, y to the south.
export function flat({ lat, lng }) {
  return { x: (lng + 180) / 360, y: 0.5 - Math.log(Math.tan(Math.PI / 4 + (lat * rad) / 2)) / (2 * Math.PI) };
}

// around is the box that holds all places.
export function around(places) {
  const lats = places.map((p) => p.lat), lngs = places.map((p) => p.lng);
  return { south: Math.min(...lats), north: Math.max(...lats), west: Math.min(...lngs), east: Math.max(...lngs) };
}

export const isPlace = (p) => Number.isFinite(p?.lat) && Number.isFinite(p?.lng) && Math.abs(p.lat) < 85;
