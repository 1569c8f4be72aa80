package protobuf_test

func fieldRules() []rule {
	return []rule{
		{"field added", m3("string a = 1;"), m3("string a = 1; string b = 2;"), true, true, examples, ""},
		{"field removed", m3("string a = 1; string b = 2;"), m3("string a = 1;"), true, true, examples, ""},
		{"field renamed", m3("string a = 1;"), m3("string b = 1;"), true, true, messageDiff, ""},
		{"field's number changed", m3("string a = 1;"), m3("string a = 2;"), true, true, examples, ""},
		{"two fields swap numbers", m3("string a = 1; int32 b = 2;"), m3("string a = 2; int32 b = 1;"), false, false, fieldDiff, ""},
		{"fields in another order", m3("string a = 1; int32 b = 2;"), m3("int32 b = 2; string a = 1;"), true, true, messageDiff, ""},
		{"number used for another type", m3("string a = 1;"), m3("int64 b = 1;"), false, false, fieldDiff, ""},
		{"required field added", m2("optional string a = 1;"), m2("optional string a = 1; required string b = 2;"), false, false, examples, ""},
		{"required field removed", m2("optional string a = 1; required string b = 2;"), m2("optional string a = 1;"), false, false, examples, ""},
		{"required field renamed", m2("required string a = 1;"), m2("required string b = 1;"), true, true, messageDiff, ""},
		{"optional field added in proto2", m2(""), m2("optional string a = 1;"), true, true, messageDiff, ""},
		{"repeated field added", m3(""), m3("repeated int32 a = 1;"), true, true, messageDiff, ""},
		{"message field added", p3("message M {} message N {}"), p3("message M { N n = 1; } message N {}"), true, true, messageDiff, ""},
		{"group added", m2(""), m2("optional group G = 1 { optional int32 a = 2; }"), true, true, messageDiff, ""},
		{"type of a group's field changed", m2("optional group G = 1 { optional int32 a = 2; }"), m2("optional group G = 1 { optional string a = 2; }"), false, false, updating, "its texts have groups apart from messages and fields, and it does not compare them"},
		{"group to message", m2("optional group G = 1 { optional int32 a = 2; }"), p2("package n; message M { message G { optional int32 a = 2; } optional G g = 1; }"), false, false, updating, "as above"},
	}
}

func typeRules() []rule {
	return []rule{
		{"int32 to int64", m3("int32 a = 1;"), m3("int64 a = 1;"), true, true, examples, ""},
		{"int32 to uint64", m3("int32 a = 1;"), m3("uint64 a = 1;"), true, true, fieldDiff, ""},
		{"int32 to bool", m3("int32 a = 1;"), m3("bool a = 1;"), true, true, fieldDiff, ""},
		{"uint32 to enum", m3("uint32 a = 1;"), p3("package n; message M { E a = 1; } enum E { A = 0; }"), true, true, examples, ""},
		{"enum to bool", p3("package n; message M { E a = 1; } enum E { A = 0; }"), m3("bool a = 1;"), true, true, fieldDiff, ""},
		{"int32 to sint32", m3("int32 a = 1;"), m3("sint32 a = 1;"), false, false, fieldDiff, ""},
		{"sint32 to sint64", m3("sint32 a = 1;"), m3("sint64 a = 1;"), true, true, fieldDiff, ""},
		{"sint32 to enum", m3("sint32 a = 1;"), p3("package n; message M { E a = 1; } enum E { A = 0; }"), false, false, fieldDiff, ""},
		{"int32 to fixed32", m3("int32 a = 1;"), m3("fixed32 a = 1;"), false, false, fieldDiff, ""},
		{"fixed32 to sfixed32", m3("fixed32 a = 1;"), m3("sfixed32 a = 1;"), true, true, fieldDiff, ""},
		{"fixed64 to sfixed64", m3("fixed64 a = 1;"), m3("sfixed64 a = 1;"), true, true, fieldDiff, ""},
		{"fixed32 to fixed64", m3("fixed32 a = 1;"), m3("fixed64 a = 1;"), false, false, fieldDiff, ""},
		{"fixed32 to float", m3("fixed32 a = 1;"), m3("float a = 1;"), false, false, fieldDiff, ""},
		{"fixed64 to double", m3("fixed64 a = 1;"), m3("double a = 1;"), false, false, fieldDiff, ""},
		{"float to double", m3("float a = 1;"), m3("double a = 1;"), false, false, fieldDiff, ""},
		{"int64 to double", m3("int64 a = 1;"), m3("double a = 1;"), false, false, fieldDiff, ""},
		{"string to bytes", m3("string a = 1;"), m3("bytes a = 1;"), true, true, examples, ""},
		{"string to int32", m3("string a = 1;"), m3("int32 a = 1;"), false, false, examples, ""},
		{"int32 to message", p3("message M { int32 a = 1; } message N {}"), p3("message M { N a = 1; } message N {}"), false, false, examples, ""},
		{"bytes to message", p3("message M { bytes a = 1; } message N {}"), p3("message M { N a = 1; } message N {}"), false, false, fieldDiff, ""},
		{"message to another", p3("message M { N a = 1; } message N {} message O {}"), p3("message M { O a = 1; } message N {} message O {}"), false, false, examples, ""},
		{"message's name in full", m3("message N {} N a = 1;"), m3("message N {} .n.M.N a = 1;"), true, true, examples, ""},
		{"message's name in full, without package", p3("message M { N a = 1; message N {} }"), p3("message M { .M.N a = 1; message N {} }"), true, true, examples, ""},
	}
}

func mapRules() []rule {
	return []rule{
		{"map added", m3(""), m3("map<string, int32> a = 1;"), true, true, messageDiff, ""},
		{"map removed", m3("map<string, int32> a = 1;"), m3(""), true, true, schemaDiff, ""},
		{"type of a map's values", m3("map<string, int32> a = 1;"), m3("map<string, string> a = 1;"), false, false, examples, ""},
		{"type of a map's values, one group", m3("map<string, int32> a = 1;"), m3("map<string, int64> a = 1;"), true, true, fieldDiff, ""},
		{"type of a map's keys", m3("map<string, int32> a = 1;"), m3("map<int32, int32> a = 1;"), false, false, fieldDiff, ""},
		{"type of a map's keys, one group", m3("map<int32, int32> a = 1;"), m3("map<int64, int32> a = 1;"), true, true, fieldDiff, ""},
		{"message of a map's values", m3("message A {} message B {} map<string, A> a = 1;"), m3("message A {} message B {} map<string, B> a = 1;"), false, false, fieldDiff, ""},
		{"map's values by their full name", m3("message A {} map<string, A> a = 1;"), m3("message A {} map<string, M.A> a = 1;"), true, true, examples, ""},
		{"map to list of messages", m3("map<string, int32> a = 1;"), m3("message E { string key = 1; int32 value = 2; } repeated E a = 1;"), false, false, fieldDiff, ""},
		{"map renamed", m3("map<string, int32> a = 1;"), m3("map<string, int32> b = 1;"), true, true, messageDiff, ""},
		{"map to string", m3("map<string, int32> a = 1;"), m3("string a = 1;"), false, false, fieldDiff, ""},
	}
}

func labelRules() []rule {
	return []rule{
		{"string optional to repeated", m3("optional string a = 1;"), m3("repeated string a = 1;"), true, true, examples, ""},
		{"bytes optional to repeated", m3("optional bytes a = 1;"), m3("repeated bytes a = 1;"), true, true, examples, ""},
		{"message optional to repeated", m3("message N {} optional N a = 1;"), m3("message N {} repeated N a = 1;"), true, true, examples, ""},
		{"number optional to repeated", m3("optional int32 a = 1;"), m3("repeated int32 a = 1;"), false, false, examples, ""},
		{"number optional to repeated in proto2", m2("optional int32 a = 1;"), m2("repeated int32 a = 1;"), false, false, fieldDiff, ""},
		{"bool optional to repeated", m3("optional bool a = 1;"), m3("repeated bool a = 1;"), false, false, fieldDiff, ""},
		{"double optional to repeated", m3("optional double a = 1;"), m3("repeated double a = 1;"), false, false, fieldDiff, ""},
		{"enum optional to repeated", m3("enum E { A = 0; } optional E a = 1;"), m3("enum E { A = 0; } repeated E a = 1;"), false, false, fieldDiff, ""},
		{"number without label to optional", m3("int32 a = 1;"), m3("optional int32 a = 1;"), true, true, fieldDiff, ""},
		{"number without label to repeated", m3("int32 a = 1;"), m3("repeated int32 a = 1;"), true, false, updating, "it looks at no label that is not written, also where a list's values are lost"},
		{"string without label to repeated", m3("string a = 1;"), m3("repeated string a = 1;"), true, true, fieldDiff, ""},
		{"number required to optional", m2("required int32 a = 1;"), m2("optional int32 a = 1;"), false, false, fieldDiff, ""},
		{"string required to optional", m2("required string a = 1;"), m2("optional string a = 1;"), true, false, updating, "it takes every change of a string's label"},
		{"message required to repeated", m2("message N {} required N a = 1;"), m2("message N {} repeated N a = 1;"), true, false, updating, "it looks at no label of messages"},
		{"number repeated to a member of a oneof", m3("repeated int32 a = 1;"), m3("oneof o { int32 a = 1; }"), false, true, updating, "as for a number without label"},
	}
}

func enumRules() []rule {
	e := func(values string) string {
		return p3("package n; message M { E a = 1; } enum E { A = 0; " + values + "}")
	}
	return []rule{
		{"value added", e(""), e("B = 1;"), true, true, enumDiff, ""},
		{"value removed", e("B = 1;"), e(""), true, true, enumDiff, ""},
		{"value renamed", e("B = 1;"), e("C = 1;"), true, true, examples, ""},
		{"value's number changed", e("B = 1;"), e("B = 2;"), true, true, enumDiff, ""},
		{"enum added", p3("message M {}"), p3("message M {} enum E { A = 0; }"), true, true, schemaDiff, ""},
		{"enum removed", p3("message M {} enum E { A = 0; }"), p3("message M {}"), true, true, schemaDiff, ""},
		{"enum to another", p3("message M { E a = 1; } enum E { A = 0; }"), p3("message M { F a = 1; } enum F { B = 0; }"), true, true, fieldDiff, ""},
		{"enum nested later", p3("message M { E a = 1; } enum E { A = 0; }"), p3("message M { E a = 1; enum E { A = 0; } }"), true, true, schemaDiff, ""},
		{"enum to message of its name", p3("message M { E a = 1; } enum E { A = 0; }"), p3("message M { E a = 1; } message E {}"), false, false, examples, ""},
	}
}
