package protobuf_test

import (
	"testing"

	"github.com/waybillhq/waybill/registry/protobuf"
)

func TestX(t *testing.T) {
	const text = `// c
syntax = "proto3";
package a.b; import "google/protobuf/timestamp.proto"; import "confluent/meta.proto";
option java_package = "x.y"; option (confluent.file_meta).doc = "it's";
/* x */
enum E { A = 0; B = 1 [deprecated = true]; reserved 5, 7 to 9; reserved "Q"; }
message M {
  reserved 100 to max, 20;
  message N { string s = 1; }
  map<string, N> ns = 3;
  optional int32 x = 2 [json_name = "xx", deprecated = true];
  oneof o { string p = 4; google.protobuf.Timestamp at = 5; }
  repeated E es = 6 [(confluent.field_meta) = { doc: "d", tags: ["PII"], params: [{key: "k", value: "v"}] }];
  enum X { Z = 0; }
}
service S { rpc Do (stream M) returns (M.N) { option deprecated = true; } rpc Do2 (M) returns (M); }
`
	c, err := protobuf.Canonical(text)
	t.Log(err, "\n"+c)
	again, err := protobuf.Canonical(c)
	if again != c {
		t.Error(err, again)
	}
	var im protobuf.Imports
	s, err := im.Compile(c, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + s.Normal())
	ser, err := s.Serialized()
	t.Log(ser, err, s.Order())
	c2, err := protobuf.Canonical(ser)
	t.Log(err, "\n"+c2)
	s2, err := im.Compile(c2, false)
	if err != nil {
		t.Fatal(err)
	}
	if s2.Normal() != s.Normal() || s2.Order() != s.Order() {
		t.Error(s2.Normal(), s2.Order())
	}
}
