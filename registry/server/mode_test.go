package server_test

import (
	"fmt"
	"testing"
)

// chosen is the request body for an Avro enum with an id and a version.
func chosen(name string, id, version int) string {
	return fmt.Sprintf(`{"schema":"{\"type\":\"enum\",\"name\":\"%s\",\"symbols\":[\"A\"]}","id":%d,"version":%d}`, name, id, version)
}

func TestModesDecideWhatMayBeWritten(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/one/versions", schema(fieldA), 200, `{"id":1}`)
	r.want("POST", "/subjects/two/versions", schema(fieldA), 200, `{"id":1}`)
	r.want("PUT", "/mode/one", `{"mode":"readonly"}`, 200, `{"mode":"readonly"}`)
	r.want("GET", "/mode/one", "", 200, `{"mode":"READONLY"}`)
	r.refused("GET", "/mode/two", "", 404, 40409)
	r.want("GET", "/mode/two?defaultToGlobal=true", "", 200, `{"mode":"READWRITE"}`)

	r.want("POST", "/subjects/one/versions", schema(fieldA), 200, `{"id":1}`) // is there already
	r.refused("POST", "/subjects/one/versions", schema(fieldA+","+fieldB), 422, 42205)
	r.refused("DELETE", "/subjects/one", "", 422, 42205)
	r.refused("DELETE", "/subjects/one/versions/1", "", 422, 42205)
	r.refused("PUT", "/config/one", `{"compatibility":"NONE"}`, 422, 42205)
	r.want("POST", "/subjects/two/versions", schema(fieldA+","+fieldB), 200, `{"id":2}`)

	r.want("PUT", "/mode", `{"mode":"READONLY"}`, 200, `{"mode":"READONLY"}`)
	r.want("PUT", "/mode/one", `{"mode":"READWRITE"}`, 200, `{"mode":"READWRITE"}`)
	r.refused("POST", "/subjects/two/versions", schema(fieldA+","+fieldB+`,{"name":"d","type":"int","default":1}`), 422, 42205)
	r.refused("PUT", "/config", `{"compatibility":"NONE"}`, 422, 42205)
	r.refused("DELETE", "/config", "", 422, 42205)
	r.want("POST", "/subjects/one/versions", schema(fieldA+","+fieldB), 200, `{"id":2}`)

	r.want("DELETE", "/mode/one", "", 200, `{"mode":"READWRITE"}`)
	r.refused("DELETE", "/mode/one", "", 404, 40401)
	r.want("GET", "/mode/one?defaultToGlobal=true", "", 200, `{"mode":"READONLY"}`)
	r.want("DELETE", "/mode", "", 200, `{"mode":"READONLY"}`)
	r.want("GET", "/mode", "", 200, `{"mode":"READWRITE"}`)
}

func TestImportKeepsIdsAndVersionsOfElsewhere(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.refused("POST", "/subjects/one/versions", chosen("A", 50, 3), 422, 42205) // not in import mode
	r.want("POST", "/subjects/other/versions", chosen("X", 0, 0), 200, `{"id":1}`)
	r.refused("PUT", "/mode", `{"mode":"IMPORT"}`, 422, 42205) // there are schemas
	r.want("PUT", "/mode/one", `{"mode":"IMPORT"}`, 200, `{"mode":"IMPORT"}`)

	r.want("POST", "/subjects/one/versions", chosen("A", 50, 3), 200, `{"id":50}`)
	r.want("POST", "/subjects/one/versions", chosen("A", 50, 3), 200, `{"id":50}`)
	r.want("POST", "/subjects/one/versions", chosen("B", 40, 1), 200, `{"id":40}`) // incompatible, earlier, a lower id
	r.want("GET", "/subjects/one/versions", "", 200, `[1,3]`)
	r.refused("POST", "/subjects/one/versions", chosen("C", 50, 4), 422, 42205) // the id is another schema's
	r.refused("POST", "/subjects/one/versions", chosen("C", 51, 3), 422, 42205) // so is the version
	r.refused("POST", "/subjects/one/versions", chosen("C", 0, 0), 422, 42205)  // no id
	r.want("POST", "/subjects/one/versions", chosen("C", 51, 0), 200, `{"id":51}`)
	r.want("GET", "/subjects/one/versions", "", 200, `[1,3,4]`)

	r.want("PUT", "/mode/one", `{"mode":"READWRITE"}`, 200, `{"mode":"READWRITE"}`)
	r.want("PUT", "/config/one", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	r.refused("POST", "/subjects/one/versions", chosen("D", 0, 9), 422, 42201) // the next is 5
	r.want("POST", "/subjects/one/versions", chosen("D", 0, 5), 200, `{"id":52}`)
	r.want("POST", "/subjects/one/versions", chosen("D", 0, 5), 200, `{"id":52}`)
	r.want("POST", "/subjects/other/versions", chosen("X", 0, -1), 200, `{"id":1}`)
}

func TestImportClearsWhatWasDeletedSoftly(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/one/versions", schema(fieldA), 200, `{"id":1}`)
	r.want("PUT", "/config/one", `{"compatibility":"FULL"}`, 200, `{"compatibility":"FULL"}`)
	r.refused("PUT", "/mode/one", `{"mode":"IMPORT"}`, 422, 42205)
	r.want("PUT", "/mode/one?force=true", `{"mode":"IMPORT"}`, 200, `{"mode":"IMPORT"}`)
	r.want("GET", "/subjects/one/versions", "", 200, `[1]`)
	r.want("PUT", "/mode/one", `{"mode":"READWRITE"}`, 200, `{"mode":"READWRITE"}`)
	r.want("DELETE", "/subjects/one", "", 200, `[1]`)
	r.want("PUT", "/mode", `{"mode":"IMPORT"}`, 200, `{"mode":"IMPORT"}`)
	r.want("GET", "/subjects?deleted=true", "", 200, `[]`)
	r.refused("GET", "/schemas/ids/1", "", 404, 40403)
	r.want("GET", "/config/one", "", 200, `{"compatibilityLevel":"FULL"}`)
	r.want("DELETE", "/mode/one", "", 200, `{"mode":"READWRITE"}`)
	r.want("POST", "/subjects/one/versions", chosen("Z", 1, 1), 200, `{"id":1}`) // it is known what id 1 was elsewhere
}

func TestReferencedSchemasStay(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/base/versions", chosen("A", 0, 0), 200, `{"id":1}`)
	using := `{"schema":"{\"type\":\"record\",\"name\":\"U\",\"fields\":[{\"name\":\"a\",\"type\":\"A\"}]}","references":[{"name":"A","subject":"base","version":1}]}`
	r.want("POST", "/subjects/user/versions", using, 200, `{"id":2}`)
	r.want("GET", "/subjects/base/versions/1/referencedby", "", 200, `[2]`)
	for _, path := range []string{"/subjects/base", "/subjects/base/versions/1", "/subjects/base/versions/latest"} {
		r.refused("DELETE", path, "", 422, 42206)
	}
	r.want("DELETE", "/subjects/user", "", 200, `[1]`)
	r.want("GET", "/subjects/base/versions/1/referencedby", "", 200, `[]`)
	r.want("GET", "/subjects/base/versions/1/referencedby?deleted=true", "", 200, `[2]`)
	r.want("DELETE", "/subjects/base", "", 200, `[1]`)
	r.refused("POST", "/subjects/user/versions", using, 422, 42201) // what it refers to is deleted
	// A schema deleted softly is still read by its id, so what it refers to stays.
	r.refused("DELETE", "/subjects/base?permanent=true", "", 422, 42206)
	r.refused("DELETE", "/subjects/base/versions/1?permanent=true", "", 422, 42206)
	r.refused("PUT", "/mode/base", `{"mode":"IMPORT"}`, 422, 42206) // which would delete it for good
	r.want("DELETE", "/subjects/user?permanent=true", "", 200, `[1]`)
	r.want("DELETE", "/subjects/base?permanent=true", "", 200, `[1]`)
}

func TestSchemasWithReferencesAreComparedWhole(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/base/versions", request(`{"type":"record","name":"n.A","fields":[{"name":"x","type":"int"}]}`), 200, `{"id":1}`)
	r.want("PUT", "/config/base", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	r.want("POST", "/subjects/base/versions", request(`{"type":"record","name":"n.A","fields":[{"name":"y","type":"int"}]}`), 200, `{"id":2}`)
	using := func(version int, fields string) string {
		return fmt.Sprintf(`{"schema":"{\"type\":\"record\",\"name\":\"U\",\"fields\":[%s]}","references":[{"name":"n.A","subject":"base","version":%d}]}`, fields, version)
	}
	const a = `{\"name\":\"a\",\"type\":\"n.A\"}`
	r.want("POST", "/subjects/user/versions", using(1, a), 200, `{"id":3}`)
	// The same text over another A is another schema, and y is missing.
	r.refused("POST", "/subjects/user/versions", using(2, a), 409, 409)
	// A null that nobody wrote as default is none.
	r.refused("POST", "/subjects/user/versions", using(1, a+`,{\"name\":\"b\",\"type\":[\"null\",\"n.A\"]}`), 409, 409)
	r.want("POST", "/subjects/user/versions", using(1, a+`,{\"name\":\"b\",\"type\":[\"null\",\"n.A\"],\"default\":null}`), 200, `{"id":4}`)
}

func TestSubjectWhoseVersionsReferToEachOtherIsDeletedWhole(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("PUT", "/config", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	r.want("POST", "/subjects/one/versions", chosen("A", 0, 0), 200, `{"id":1}`)
	r.want("POST", "/subjects/one/versions", `{"schema":"{\"type\":\"record\",\"name\":\"U\",\"fields\":[{\"name\":\"a\",\"type\":\"A\"}]}","references":[{"name":"A","subject":"one","version":1}]}`, 200, `{"id":2}`)
	r.refused("DELETE", "/subjects/one/versions/1", "", 422, 42206)
	r.want("DELETE", "/subjects/one", "", 200, `[1,2]`)
	r.want("DELETE", "/subjects/one?permanent=true", "", 200, `[1,2]`)
}
