package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// proto3 is the request body for a Protobuf schema; refs are names, subjects
// and versions.
func proto3(text string, refs ...any) string {
	return typed("PROTOBUF", "syntax = \"proto3\";\n"+text, refs...)
}

func typed(kind, text string, refs ...any) string {
	var all []map[string]any
	for i := 0; i < len(refs); i += 3 {
		all = append(all, map[string]any{"name": refs[i], "subject": refs[i+1], "version": refs[i+2]})
	}
	b, _ := json.Marshal(map[string]any{"schemaType": kind, "schema": text, "references": all})
	return string(b)
}

// text64 is a schema's descriptor as clients send it that parse no text.
func text64(t *testing.T, file *descriptorpb.FileDescriptorProto) string {
	t.Helper()
	raw, err := proto.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// asked asks and reads the answer.
func asked[T any](r *registry, method, path, body string) T {
	r.Helper()
	var out T
	status, got := r.ask(method, path, body)
	if err := json.Unmarshal([]byte(got), &out); err != nil || status != 200 {
		r.Fatalf("%s %s: %d %s", method, path, status, got)
	}
	return out
}

type schemaOf struct {
	Subject, Schema, SchemaType string
	ID, Version                 int
	References                  []struct{ Name string }
	Message                     string
	Messages                    []string
}

const person = "package acme; message Person { string name = 1; }"

func TestProtobufIsRegisteredServedAndFound(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("GET", "/schemas/types", "", 200, `["AVRO","JSON","PROTOBUF"]`)
	r.want("POST", "/subjects/p/versions", proto3("// somebody\n"+person), 200, `{"id":1}`)
	const text = "syntax = \"proto3\";\npackage acme;\n\nmessage Person {\n  string name = 1;\n}"
	const kept = `"syntax = \"proto3\";\npackage acme;\n\nmessage Person {\n  string name = 1;\n}\n"`
	r.want("GET", "/schemas/ids/1", "", 200, `{"schemaType":"PROTOBUF","schema":`+kept+`}`)
	r.want("GET", "/schemas/ids/1/schema", "", 200, text)
	r.want("GET", "/subjects/p/versions/latest", "", 200, `{"subject":"p","version":1,"id":1,"schemaType":"PROTOBUF","schema":`+kept+`}`)
	r.want("POST", "/subjects/p", proto3("package acme;\nmessage Person{string name=1;}"), 200, `{"subject":"p","version":1,"id":1,"schemaType":"PROTOBUF","schema":`+kept+`}`)
	// One schema, one id, and no version of what says the same.
	r.want("POST", "/subjects/q/versions", proto3("/* elsewhere */"+person), 200, `{"id":1}`)
	r.refused("POST", "/subjects/p", proto3("package acme; message Person { string other = 2; }"), 404, 40403)
	r.refused("POST", "/subjects/p/versions", typed("PROTOBUF", "message M {"), 422, 42201)
	r.refused("POST", "/subjects/p/versions", typed("PROTOBUF", `"string"`), 422, 42201)
	r.refused("POST", "/subjects/p/versions", typed("PROTOBUF", "bm8gc2NoZW1h"), 422, 42201)
}

func TestADescriptorInBase64IsTheTextItMeans(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	label, str := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_TYPE_STRING
	sent := text64(t, &descriptorpb.FileDescriptorProto{
		Name: proto.String("acme/person.proto"), Package: proto.String("acme"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{
			Name:  proto.String("Person"),
			Field: []*descriptorpb.FieldDescriptorProto{{Name: proto.String("name"), Number: proto.Int32(1), Label: &label, Type: &str}},
		}},
	})
	r.want("POST", "/subjects/p/versions", typed("PROTOBUF", sent), 200, `{"id":1}`)
	r.want("POST", "/subjects/p/versions", proto3(person), 200, `{"id":1}`)
	if got := asked[schemaOf](r, "POST", "/subjects/p", typed("PROTOBUF", sent)); got.ID != 1 || !strings.Contains(got.Schema, "message Person {") {
		t.Errorf("found: %+v", got)
	}
	// Whoever parses no text gets a descriptor, wherever a schema is served.
	for _, ask := range [][2]string{
		{"GET", "/schemas/ids/1"},
		{"GET", "/subjects/p/versions/1"},
		{"GET", "/subjects/p/versions/latest"},
		{"POST", "/subjects/p"},
	} {
		body := ""
		if ask[0] == "POST" {
			body = proto3(person)
		}
		got := asked[schemaOf](r, ask[0], ask[1]+"?format=serialized", body)
		raw, err := base64.StdEncoding.DecodeString(got.Schema)
		var file descriptorpb.FileDescriptorProto
		if err != nil || proto.Unmarshal(raw, &file) != nil || file.GetName() != "default" || file.GetPackage() != "acme" ||
			file.MessageType[0].GetName() != "Person" || got.SchemaType != "PROTOBUF" {
			t.Errorf("%v: %+v, %v", ask, got, err)
		}
	}
	for _, path := range []string{"/schemas/ids/1/schema", "/subjects/p/versions/1/schema"} {
		if status, got := r.ask("GET", path+"?format=serialized", ""); status != 200 || strings.Contains(got, "message") {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
	// A format that nobody knows is the text; Avro has none.
	if got := asked[schemaOf](r, "GET", "/schemas/ids/1?format=other", ""); !strings.Contains(got.Schema, "message") {
		t.Errorf("%+v", got)
	}
	r.want("POST", "/subjects/a/versions", schema(fieldA), 200, `{"id":2}`)
	if got := asked[schemaOf](r, "GET", "/schemas/ids/2?format=serialized", ""); !strings.Contains(got.Schema, "record") {
		t.Errorf("%+v", got)
	}
}

func TestReferencesOfProtobufAreImports(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/person/versions", proto3(person), 200, `{"id":1}`)
	order := `package acme; import "acme/person.proto"; import "google/protobuf/timestamp.proto";
message Order { Person by = 1; google.protobuf.Timestamp at = 2; }`
	refs := []any{"acme/person.proto", "person", 1}
	r.refused("POST", "/subjects/order/versions", proto3(order), 422, 42201)
	r.refused("POST", "/subjects/order/versions", proto3(order, "person.proto", "person", 1), 422, 42201)
	r.want("POST", "/subjects/order/versions", proto3(order, refs...), 200, `{"id":2}`)
	if got := asked[schemaOf](r, "GET", "/schemas/ids/2", ""); len(got.References) != 1 || got.References[0].Name != "acme/person.proto" {
		t.Errorf("%+v", got)
	}
	r.want("GET", "/subjects/person/versions/1/referencedby", "", 200, `[2]`)
	r.refused("DELETE", "/subjects/person/versions/1", "", 422, 42206)
	// And what imports what imports it.
	all := `import "acme/order.proto"; message All { repeated acme.Order orders = 1; }`
	r.want("POST", "/subjects/all/versions", proto3(all, "acme/order.proto", "order", 1), 200, `{"id":3}`)
	raw := asked[schemaOf](r, "GET", "/schemas/ids/3?format=serialized", "")
	var file descriptorpb.FileDescriptorProto
	if b, err := base64.StdEncoding.DecodeString(raw.Schema); err != nil || proto.Unmarshal(b, &file) != nil || fmt.Sprint(file.Dependency) != "[acme/order.proto]" {
		t.Errorf("%v", &file)
	}
	// One text under two names, of which each file knows one.
	r.want("POST", "/subjects/other/versions", proto3(`import "person.proto"; message Other { acme.Person p = 1; }`, "person.proto", "person", 1), 200, `{"id":4}`)
	both := proto3(`import "other.proto"; import "acme/order.proto"; message Both { Other a = 1; acme.Order b = 2; }`,
		"other.proto", "other", 1, "acme/order.proto", "order", 1)
	r.want("POST", "/subjects/both/versions", both, 200, `{"id":5}`)
}

func TestAReferenceToAnotherLanguageIsRefused(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/avro/versions", schema(fieldA), 200, `{"id":1}`)
	r.want("POST", "/subjects/proto/versions", proto3(person), 200, `{"id":2}`)
	status, got := r.ask("POST", "/subjects/p/versions", proto3(`import "a.proto"; message M {}`, "a.proto", "avro", 1))
	if status != 422 || !strings.Contains(got, `reference \"a.proto\": it is of type AVRO; a schema of type PROTOBUF refers only to its own kind`) {
		t.Errorf("%d %s", status, got)
	}
	status, got = r.ask("POST", "/subjects/a/versions", typed("AVRO", `"int"`, "x", "proto", 1))
	if status != 422 || !strings.Contains(got, "it is of type PROTOBUF") {
		t.Errorf("%d %s", status, got)
	}
}

func TestProtobufFollowsItsLevel(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/p/versions", proto3("package acme; message Person { string name = 1; int32 age = 2; }"), 200, `{"id":1}`)
	bad := proto3("package acme; message Person { string name = 1; string age = 2; }")
	want := `at field \"acme.Person.age\", the new schema cannot read data of version 1: incompatible types (written as int32, read as string)`
	if status, got := r.ask("POST", "/subjects/p/versions", bad); status != 409 || !strings.Contains(got, want) || !strings.Contains(got, "to mend") {
		t.Errorf("%d %s", status, got)
	}
	for _, path := range []string{"", "/latest", "/1"} {
		if status, got := r.ask("POST", "/compatibility/subjects/p/versions"+path+"?verbose=true", bad); status != 200 || !strings.Contains(got, want) || !strings.Contains(got, `"is_compatible":false`) {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
	r.want("POST", "/compatibility/subjects/p/versions?verbose=true", proto3(person), 200, `{"is_compatible":true}`)
	r.want("PUT", "/config/p", `{"compatibility":"FORWARD"}`, 200, `{"compatibility":"FORWARD"}`)
	more := proto3("package acme; message Person { string name = 1; int32 age = 2; } message Pet {}")
	r.refused("POST", "/subjects/p/versions", more, 409, 409)
	r.want("PUT", "/config/p", `{"compatibility":"BACKWARD"}`, 200, `{"compatibility":"BACKWARD"}`)
	r.want("POST", "/subjects/p/versions", more, 200, `{"id":2}`)
	// Another language has no compatibility with it, and no other schema either.
	r.refused("POST", "/subjects/p/versions", schema(fieldA), 409, 409)
	r.want("PUT", "/config/p", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	r.want("POST", "/subjects/p/versions", bad, 200, `{"id":3}`)
}

func TestNormalProtobufDoesNotDependOnSpelling(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/person/versions", proto3(person), 200, `{"id":1}`)
	refs := []any{"b.proto", "person", 1}
	spelled := proto3(`package acme; import "b.proto"; message M { Person b = 2; string a = 1; }`, refs...)
	r.want("POST", "/subjects/m/versions?normalize=true", spelled, 200, `{"id":2}`)
	const normal = "syntax = \"proto3\";\npackage acme;\n\nimport \"b.proto\";\n\nmessage M {\n  string a = 1;\n  .acme.Person b = 2;\n}"
	r.want("GET", "/subjects/m/versions/1/schema", "", 200, normal)
	for _, query := range []string{"", "?normalize=true"} {
		if got := asked[schemaOf](r, "POST", "/subjects/m"+query, spelled); got.ID != 2 {
			t.Errorf("found %+v", got)
		}
	}
	// The same but for the order of messages is another: serializers count them.
	r.want("POST", "/subjects/o/versions", proto3("message A {} message B {}"), 200, `{"id":3}`)
	r.want("POST", "/subjects/o/versions", proto3("message B {} message A {}"), 200, `{"id":4}`)
	entry := "message N {} message AsEntry { option map_entry = true; string key = 1; int32 value = 2; } repeated AsEntry as = 1;"
	r.want("POST", "/subjects/e/versions", proto3("message M { map<string, int32> as = 1; message N {} }"), 200, `{"id":5}`)
	r.want("POST", "/subjects/e/versions", proto3("message M { "+entry+" }"), 200, `{"id":5}`)
	entry = "message AsEntry { option map_entry = true; string key = 1; int32 value = 2; } message N {} repeated AsEntry as = 1;"
	r.want("POST", "/subjects/e/versions", proto3("message M { "+entry+" }"), 200, `{"id":6}`)
}

// Confluent takes imports that are not there and options nobody defines.
func TestProtobufThatAnotherRegistryTookIsServedAndCompared(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	start(t, e, topic).stop()
	put(t, e, topic,
		`{"keytype":"SCHEMA","subject":"lax","version":1,"magic":1}`, `{"subject":"lax","version":1,"id":10,"schemaType":"PROTOBUF","schema":"syntax = \"proto3\";\nimport \"gone.proto\";\nmessage M { string a = 1 [(gone) = 1]; }","deleted":false}`,
		`{"keytype":"SCHEMA","subject":"broken","version":1,"magic":1}`, `{"subject":"broken","version":1,"id":11,"schemaType":"PROTOBUF","schema":"message M { Gone g = 1; }","deleted":false}`,
		`{"keytype":"SCHEMA","subject":"spelled","version":1,"magic":1}`, `{"subject":"spelled","version":1,"id":12,"schemaType":"PROTOBUF","schema":"syntax = \"proto3\"; message M { string a = 1; }","deleted":false}`,
	)
	r := start(t, e, topic)
	r.want("GET", "/schemas/ids/10", "", 200, `{"schemaType":"PROTOBUF","schema":"syntax = \"proto3\";\nimport \"gone.proto\";\nmessage M { string a = 1 [(gone) = 1]; }"}`)
	if got := asked[schemaOf](r, "GET", "/schemas/ids/10?format=serialized", ""); got.Schema == "" || strings.Contains(got.Schema, "message") {
		t.Errorf("%+v", got)
	}
	r.refused("POST", "/subjects/lax/versions", proto3("message M { int32 a = 1; }"), 409, 409)
	r.want("POST", "/subjects/lax/versions", proto3("message M { string a = 1; string b = 2; }"), 200, `{"id":13}`)
	r.want("GET", "/schemas/ids/11/schema", "", 200, "message M { Gone g = 1; }")
	r.refused("GET", "/schemas/ids/11?format=serialized", "", 422, 42201)
	r.refused("POST", "/subjects/broken/versions", proto3("message M {}"), 409, 409)
	r.want("POST", "/subjects/spelled/versions", proto3("message M { string a = 1; }"), 200, `{"id":12}`)
	// What one imports may be such a schema.
	r.want("POST", "/subjects/user/versions", proto3(`import "lax.proto"; message U { M m = 1; }`, "lax.proto", "lax", 1), 200, `{"id":14}`)
}

// As in Avro: what many ways lead to is read once.
func TestImportsThatMeetAgainAreReadOnce(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	r.want("POST", "/subjects/d0/versions", proto3("message D0 {}"), 200, `{"id":1}`)
	for i := 1; i <= 25; i++ {
		body := proto3(fmt.Sprintf(`import "a%d"; import "b%d"; message D%d { D%d a = 1; D%d b = 2; }`, i-1, i-1, i, i-1, i-1),
			fmt.Sprintf("a%d", i-1), fmt.Sprintf("d%d", i-1), 1, fmt.Sprintf("b%d", i-1), fmt.Sprintf("d%d", i-1), 1)
		r.want("POST", fmt.Sprintf("/subjects/d%d/versions", i), body, 200, fmt.Sprintf(`{"id":%d}`, i+1))
	}
}
