// The base map: the streets that come with this program, so that a map needs no
// other host. It is read once for all maps of a page.
let reading = null;

export function readBase() {
  reading ??= fetch(new URL("../map/sao-paulo.geojson", import.meta.url)).then((answer) => {
    if (!answer.ok) throw new Error(`base map: HTTP ${answer.status}`);
    return answer.json();
  });
  reading.catch(() => { reading = null; }); // the next map asks again
  return reading;
}

export const districts = (base) => base.features.filter((f) => f.properties.kind === "district")
  .map((f) => ({ name: f.properties.name, lng: f.geometry.coordinates[0], lat: f.geometry.coordinates[1] }));
