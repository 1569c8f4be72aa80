package protobuf_test

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/registry/protobuf"
)

// long has each part of the language that is written in its own way.
const long = `// a comment
syntax = "proto3";
package a.b; import public "confluent/type/decimal.proto"; import "google/type/date.proto"; import "confluent/meta.proto";
option java_package = "x.y"; option (confluent.file_meta).doc = "it's\n";
enum E { A = 0; C = 2; B = 1 [deprecated = true]; reserved 7 to 9, 5; reserved "Q"; option allow_alias = false; }
message M {
  reserved 1000 to max, 20;
  map<string, N> ns = 3;
  message N { string s = 1; }
  optional int32 x = 2 [json_name = "xx", deprecated = true];
  oneof o { string p = 5; google.type.Date at = 4; }
  repeated E es = 6 [(confluent.field_meta) = { doc: "d", tags: ["PII"], params: [{key: "k", value: "v"}] }];
  enum X { Z = 0; }
  message Empty {}
}
service S { rpc Do (stream M) returns (M.N) { option deprecated = true; } rpc Again (M) returns (stream M); }
`

const longCanonical = `syntax = "proto3";
package a.b;

import "google/type/date.proto";
import "confluent/meta.proto";
import public "confluent/type/decimal.proto";

option java_package = "x.y";
option (confluent.file_meta).doc = "it\'s\n";

message M {
  reserved 1000 to max;
  reserved 20;

  map<string, N> ns = 3;
  optional int32 x = 2 [
    deprecated = true,
    json_name = "xx"
  ];
  repeated E es = 6 [(confluent.field_meta) = {
    doc: "d",
    tags: [
      "PII"
    ],
    params: [
      {
        key: "k",
        value: "v"
      }
    ]
  }];

  oneof o {
    string p = 5;
    google.type.Date at = 4;
  }

  message N {
    string s = 1;
  }
  message Empty {}
  enum X {
    Z = 0;
  }
}
enum E {
  reserved 7 to 9;
  reserved 5;
  reserved "Q";
  option allow_alias = false;
  A = 0;
  C = 2;
  B = 1 [deprecated = true];
}

service S {
  rpc Do (stream M) returns (M.N) {
    option deprecated = true;
  };
  rpc Again (M) returns (stream M);
}
`

const longNormal = `syntax = "proto3";
package a.b;

import "confluent/meta.proto";
import "google/type/date.proto";
import public "confluent/type/decimal.proto";

option (confluent.file_meta) = {
  doc: "it\'s\n"
};
option java_package = "x.y";

message M {
  reserved 20;
  reserved 1000 to max;

  optional int32 x = 2 [
    deprecated = true,
    json_name = "xx"
  ];
  map<string, .a.b.M.N> ns = 3;
  repeated .a.b.E es = 6 [(confluent.field_meta) = {
    doc: "d",
    params: {
      key: "k",
      value: "v"
    },
    tags: "PII"
  }];

  oneof o {
    .google.type.Date at = 4;
    string p = 5;
  }

  message N {
    string s = 1;
  }
  message Empty {}
  enum X {
    Z = 0;
  }
}
enum E {
  reserved 5;
  reserved 7 to 9;
  reserved "Q";
  option allow_alias = false;
  A = 0;
  B = 1 [deprecated = true];
  C = 2;
}

service S {
  rpc Do (stream .a.b.M) returns (.a.b.M.N) {
    option deprecated = true;
  };
  rpc Again (.a.b.M) returns (stream .a.b.M);
}
`

func canonical(t testing.TB, text string) string {
	t.Helper()
	out, err := protobuf.Canonical(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func serialized(t testing.TB, s *protobuf.Schema) string {
	t.Helper()
	out, err := s.Serialized()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestATextIsWrittenAsConfluentKeepsIt(t *testing.T) {
	if got := canonical(t, long); got != longCanonical {
		t.Errorf("canonical:\n%s", got)
	}
	if got := compile(t, long).Normal(); got != longNormal {
		t.Errorf("normal:\n%s", got)
	}
}

// languages are texts that each say something another way.
func languages() []string {
	return []string{
		long,
		p3(""),
		"message M { optional int32 a = 1 [default = -3, (x) = 1]; } import \"google/protobuf/descriptor.proto\"; extend google.protobuf.FieldOptions { optional int32 x = 5000; }",
		p2(`message M { required string a = 1 [default = "it's \\ \"\001\x02"]; optional bytes b = 2 [default = "\000\377"]; optional double d = 3 [default = -inf]; optional E e = 4 [default = B]; enum E { A = 0; B = 1; } }`),
		p2(`message M { repeated group G = 1 { optional int32 a = 2; } extensions 100 to 199, 500 to max; message N {} oneof o { group H = 5 { optional int32 b = 6; } } } extend M { optional string x = 100; repeated M y = 101; }`),
		ed(`package p; option features.field_presence = IMPLICIT; message M { reserved a, b; int32 c = 1 [features = { field_presence: EXPLICIT }]; N n = 2 [features.message_encoding = DELIMITED]; message N {} }`),
		p3(`import "google/protobuf/descriptor.proto"; message O { repeated string s = 1; map<string, int32> m = 2; O o = 3; double d = 4; bytes b = 5; } extend google.protobuf.MessageOptions { O o = 5000; repeated int32 r = 5001; } message M { option (o).s = "a"; option (o).s = "b"; option (o).o = { s: ["x", 'y' "z"], m: { key: "k" value: -1 }, d: -1.5e10, b: "\xff" }; option (r) = 1; option (r) = 2; }`),
		p3(`package x; message A { B b = 1; message B { C c = 1; } } message C { map<int32, A.B> m = 1; map<string, C> n = 2; }`),
	}
}

// What is kept must be found again under every form that clients send.
func TestFormsOfASchemaAreOne(t *testing.T) {
	for _, text := range languages() {
		once := canonical(t, text)
		if again := canonical(t, once); again != once {
			t.Errorf("canonical twice:\n%s\n%s", once, again)
		}
		s := compile(t, text)
		normal, raw := s.Normal(), serialized(t, s)
		for name, form := range map[string]string{"canonical": once, "normal": normal, "serialized": raw, "serialized as text": canonical(t, raw)} {
			other := compile(t, form)
			if strings.Contains(text, "5000") && strings.HasPrefix(name, "serialized") {
				continue // nobody knows what the options mean before the file is read
			}
			if got := other.Normal(); got != normal {
				t.Errorf("%s:\n%s\nis not\n%s", name, got, normal)
			}
			if got := other.Order(); name != "normal" && got != s.Order() {
				t.Errorf("%s: messages %s, want %s", name, got, s.Order())
			}
		}
	}
}

// Clients for Java write entries of maps as messages, in the places that
// descriptors of protoc have them; what they number must stay where it is.
func TestEntriesOfMapsKeepTheirPlaces(t *testing.T) {
	java := p3(`package n;
message M {
  repeated .n.M.AsEntry as = 1;
  message AsEntry {
    option map_entry = true;
    string key = 1;
    int32 value = 2;
  }
  message N {}
}`)
	s := compile(t, java)
	if s.Order() != "M(AsEntry()N())" {
		t.Errorf("messages %s", s.Order())
	}
	plain := compile(t, m3("map<string, int32> as = 1; message N {}"))
	if plain.Order() != "M(N()AsEntry())" || s.Normal() != plain.Normal() {
		t.Errorf("messages %s, %s\n%s", plain.Order(), s.Normal(), plain.Normal())
	}
	if again := compile(t, canonical(t, serialized(t, s))); again.Order() != s.Order() {
		t.Errorf("by way of a descriptor: %s", again.Order())
	}
	for _, bad := range []string{
		"message AEntry { option map_entry = true; } repeated AEntry a = 1;",
		"message AEntry { option map_entry = true; string key = 1; } repeated AEntry a = 1;",
		"message AEntry { option map_entry = true; string key = 1; string value = 2; message X {} } repeated AEntry a = 1;",
		"message AEntry { option map_entry = true; string key = 1; repeated string value = 2; } repeated AEntry a = 1;",
		"message AEntry { option map_entry = true; AEntry key = 1; string value = 2; } repeated AEntry a = 1;",
		"message AEntry { option map_entry = true; string key = 1; string value = 2; } AEntry a = 1;",
		"message AEntry { option map_entry = true; enum E { Z = 0; } E key = 1; string value = 2; } repeated AEntry a = 1;",
		"message AEntry { option map_entry = true; string key = 1; string value = 2; } repeated AEntry a = 1; repeated AEntry b = 2;",
		"message AEntry { option map_entry = true; string key = 1; string value = 2; } AEntry a = 1;",
		"message BEntry { option map_entry = true; string key = 1; string value = 2; } repeated BEntry a = 1;",
		"message AEntry { option map_entry = true; double key = 1; string value = 2; } repeated AEntry a = 1;",
	} {
		var im protobuf.Imports
		if _, err := im.Compile(m3(bad), false); err == nil {
			t.Errorf("taken: %s", bad)
		}
	}
}

func TestExtensionsAndOptionsOfPeoplesOwnAreLeftOutOnRequest(t *testing.T) {
	got, err := protobuf.WithoutExtensions(`syntax = "proto2"; import "google/protobuf/descriptor.proto"; import "confluent/meta.proto";
extend google.protobuf.FieldOptions { optional int32 x = 5000; }
message M { extensions 100 to 199; optional int32 a = 1 [(x) = 1, deprecated = true, (confluent.field_meta).doc = "d"]; }`)
	if err != nil || strings.Contains(got, "exten") || strings.Contains(got, "(x)") ||
		!strings.Contains(got, "deprecated = true") || !strings.Contains(got, `(confluent.field_meta).doc = "d"`) {
		t.Errorf("%v\n%s", err, got)
	}
}
