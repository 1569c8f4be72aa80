package gen_test

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/internal/avrogen/gen"
)

// record is a schema with the fields and, after them, more members.
func record(fields, more string) string {
	return `{"type":"record","name":"A","namespace":"n","fields":[` + fields + `]` + more + `}`
}

const (
	id      = `{"name":"id","type":"string"}`
	version = `{"name":"v","type":"long"}`
	enumX   = `{"type":"enum","name":"X","symbols":["U","V"],"default":"U"}`
	enumX2  = `{"type":"enum","name":"X","symbols":["U","W"],"default":"U"}`
)

func oneField(typ string) string { return record(`{"name":"f","type":`+typ+`}`, "") }

func TestRefusalsNameTheFileAndThePlace(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"no JSON":        {`{"type":`, `a.avsc: line 1, column 8: unexpected end of JSON input`},
		"member twice":   {`{"type":"record","type":"enum"}`, `a.avsc: line 1, column 23: "type" is given twice`},
		"no named type":  {`"string"`, `a.avsc: want one record or enum`},
		"array of types": {`[` + enumX + `]`, `a.avsc: want one record or enum`},

		"topic missing":     {record(id, `,"source":"/a","key":"id"`), `a.avsc: attribute "topic" is missing`},
		"topic number":      {record(id, `,"topic":1`), `a.avsc: attribute "topic": want a string, got 1`},
		"topic empty":       {record(id, `,"topic":""`), `a.avsc: attribute "topic": want a string, got ""`},
		"source missing":    {record(id, `,"topic":"t","key":"id"`), `a.avsc: attribute "source" is missing`},
		"key missing":       {record(id, `,"topic":"t","source":"/a"`), `a.avsc: attribute "key" is missing`},
		"key no field":      {record(id, `,"topic":"t","source":"/a","key":"x"`), `a.avsc: attribute "key": n.A has no field "x"`},
		"key of long":       {record(version, `,"topic":"t","source":"/a","key":"v"`), `a.avsc: attribute "key": field "v" must be a string or uuid`},
		"key nullable":      {record(`{"name":"id","type":["null","string"]}`, `,"topic":"t","source":"/a","key":"id"`), `a.avsc: attribute "key": field "id" must be a string or uuid`},
		"sequence no field": {record(id, `,"topic":"t","source":"/a","key":"id","sequence":"x"`), `a.avsc: attribute "sequence": n.A has no field "x"`},
		"sequence string":   {record(id, `,"topic":"t","source":"/a","key":"id","sequence":"id"`), `a.avsc: attribute "sequence": field "id" must be a long or int`},
		"sequence number":   {record(id, `,"topic":"t","source":"/a","key":"id","sequence":2`), `a.avsc: attribute "sequence": want a string, got 2`},
		"nested topic":      {oneField(`{"type":"record","name":"B","topic":"t","fields":[]}`), `a.avsc: n.B: attribute "topic" belongs to the record that is the file`},
		"topic on enum":     {`{"type":"enum","name":"X","symbols":["U"],"default":"U","topic":"t"}`, `a.avsc: X: attribute "topic" belongs to the record that is the file`},
		"method hidden":     {record(id+`,{"name":"event_key","type":"string"}`, `,"topic":"t","source":"/a","key":"id"`), `a.avsc: n.A.event_key: the Go name EventKey is taken by a method`},

		"union":            {oneField(`["int","string"]`), `a.avsc: n.A.f: union ["int","string"] is not supported yet, only ["null", T]`},
		"union of three":   {oneField(`["null","int","string"]`), `a.avsc: n.A.f: union ["null","int","string"] is not supported yet, only ["null", T]`},
		"null last":        {oneField(`["int","null"]`), `a.avsc: n.A.f: union ["int","null"] is not supported yet, only ["null", T]`},
		"union in array":   {oneField(`{"type":"array","items":["int","string"]}`), `a.avsc: n.A.f: union ["int","string"] is not supported yet, only ["null", T]`},
		"fixed":            {oneField(`{"type":"fixed","name":"F","size":4}`), `a.avsc: n.A.f: type fixed is not supported yet`},
		"null":             {oneField(`"null"`), `a.avsc: n.A.f: type null is not supported yet`},
		"logical type":     {oneField(`{"type":"int","logicalType":"time-millis"}`), `a.avsc: n.A.f: logical type "time-millis" on int is not supported yet`},
		"misspelled":       {oneField(`{"type":"long","logicalType":"timestamp-micro"}`), `a.avsc: n.A.f: logical type "timestamp-micro" on long is not supported yet`},
		"unknown type":     {oneField(`"Missing"`), `a.avsc: n.A.f: type "Missing" is not defined in any file`},
		"no type":          {record(`{"name":"f"}`, ""), `a.avsc: n.A.f: has no type`},
		"fields collide":   {record(`{"name":"a_b","type":"int"},{"name":"aB","type":"int"}`, ""), `a.avsc: n.A.aB: the Go name AB is taken by a_b`},
		"nameless field":   {record(`{"type":"int"}`, ""), `a.avsc: n.A.: makes no Go name`},
		"bad decimal":      {oneField(`{"type":"bytes","logicalType":"decimal","scale":2}`), `a.avsc: n.A: `},
		"bad default":      {record(`{"name":"f","type":"int","default":"x"}`, ""), `a.avsc: n.A: `},
		"no enum default":  {oneField(`{"type":"enum","name":"X","symbols":["U"]}`), `a.avsc: enum n.X: needs a default among its symbols`},
		"alien default":    {oneField(`{"type":"enum","name":"X","symbols":["U"],"default":"Y"}`), `a.avsc: enum n.X: needs a default among its symbols`},
		"symbols collide":  {oneField(`{"type":"enum","name":"X","symbols":["A_B","AB","aB"],"default":"AB"}`), `a.avsc: enum n.X: the Go name XAB is taken by a.avsc`},
		"defined twice":    {record(`{"name":"f","type":`+enumX+`},{"name":"g","type":`+enumX+`}`, ""), `a.avsc: n.X is defined twice`},
		"reserved name":    {`{"type":"record","name":"All","fields":[]}`, `a.avsc: the Go name All is taken by contracts_gen.go`},
		"name without let": {`{"type":"record","name":"_1","fields":[]}`, `a.avsc: "_1" makes no Go name`},
	} {
		t.Run(name, func(t *testing.T) {
			refuse(t, map[string]string{"a.avsc": c.schema}, c.want)
		})
	}
}

func TestRefusalsBetweenFilesNameBoth(t *testing.T) {
	b := func(fields string) string {
		return strings.Replace(record(fields, ""), `"name":"A"`, `"name":"B"`, 1)
	}
	for name, c := range map[string]struct{ a, b, want string }{
		"defined differently": {oneField(enumX), b(`{"name":"f","type":` + enumX2 + `}`), `b.avsc: n.X is defined differently in a.avsc`},
		"same file twice":     {oneField(enumX), oneField(enumX), `b.avsc: n.A is what a.avsc defines already`},
		"one Go name":         {oneField(enumX), `{"type":"record","name":"X","namespace":"other","fields":[]}`, `b.avsc: the Go name X is taken by a.avsc`},
		"symbol and type":     {oneField(enumX), `{"type":"record","name":"XU","fields":[]}`, `a.avsc: enum n.X: the Go name XU is taken by b.avsc`},
		"two faults":          {oneField(`"fixed"`), b(`{"name":"g","type":"null"}`), "a.avsc: n.A.f: type fixed is not supported yet\nb.avsc: n.B.g: type null is not supported yet"},
	} {
		t.Run(name, func(t *testing.T) {
			refuse(t, map[string]string{"a.avsc": c.a, "b.avsc": c.b}, c.want)
		})
	}
}

func TestRefusesFoldersItCannotUse(t *testing.T) {
	if _, err := gen.Files(folder(t, nil)); err == nil || !strings.HasPrefix(err.Error(), "no *.avsc in ") {
		t.Errorf("empty folder: %v", err)
	}
	refuse(t, map[string]string{"contracts.avsc": enumX},
		"contracts.avsc: contracts_gen.go is where the list of contracts goes; name the schema otherwise")
}

// refuse takes a want that ends in ": " as the beginning: what follows is the
// Avro library's to say.
func refuse(t *testing.T, files map[string]string, want string) {
	t.Helper()
	_, err := gen.Files(folder(t, files))
	switch {
	case err == nil:
		t.Errorf("accepted, want %s", want)
	case strings.HasSuffix(want, ": ") && strings.HasPrefix(err.Error(), want):
	case err.Error() != want:
		t.Errorf("got  %s\nwant %s", err, want)
	}
}
