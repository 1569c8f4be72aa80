package protobuf_test

func messageRules() []rule {
	return []rule{
		{"same", m3("string a = 1;"), m3("string a = 1;"), true, true, schemaDiff, ""},
		{"no messages", p3(""), p3(""), true, true, schemaDiff, ""},
		{"package changed", p3("package a; message M {}"), p3("package b; message M {}"), false, false, examples, ""},
		{"package given later", p3("message M {}"), p3("package b; message M {}"), false, false, schemaDiff, ""},
		{"package and its own types renamed", p3("package a; message M { .a.M m = 1; }"), p3("package b; message M { .b.M m = 1; }"), false, false, examples, ""},
		{"message added", p3("message A {}"), p3("message A {} message B {}"), true, false, examples, ""},
		{"message removed", p3("message A {} message B {}"), p3("message A {}"), false, true, schemaDiff, ""},
		{"message renamed", p3("message A { string a = 1; }"), p3("message B { string a = 1; }"), false, false, schemaDiff, ""},
		{"message added before others", p3("message A {}"), p3("message B {} message A {}"), true, false, examples, ""},
		{"messages in another order", p3("message A {} message B {}"), p3("message B {} message A {}"), true, true, examples, ""},
		{"case of a message's name", p3("message A {}"), p3("message a {}"), false, false, schemaDiff, ""},
		{"nested message added", m3(""), m3("message N {}"), true, false, schemaDiff, ""},
		{"nested message removed", m3("message N {}"), m3(""), false, true, schemaDiff, ""},
		{"nested message moved to the top", p3("message M { message N {} N n = 1; }"), p3("message M { N n = 1; } message N {}"), false, false, fieldDiff, ""},
		{"field added to a nested message", m3("message N {}"), m3("message N { string a = 1; }"), true, true, examples, ""},
		{"type of a nested message's field changed", m3("message N { int32 a = 1; }"), m3("message N { string a = 1; }"), false, false, fieldDiff, ""},
		{"deep in nested messages", m3("message N { message O { int32 a = 1; } }"), m3("message N { message O { string a = 1; } }"), false, false, fieldDiff, ""},
		{"message becomes an enum", p3("message M { N n = 1; } message N {}"), p3("message M { N n = 1; } enum N { A = 0; }"), false, false, examples, ""},
		{"message that refers to itself", p3("message M { M m = 1; string a = 2; }"), p3("message M { M m = 1; bytes a = 2; }"), true, true, messageDiff, ""},
		{"messages that refer to each other", p3("message A { B b = 1; } message B { A a = 1; int32 x = 2; }"), p3("message A { B b = 1; } message B { A a = 1; string x = 2; }"), false, false, messageDiff, ""},
		{"numbers reserved", m3("string a = 1; string b = 2;"), m3("string a = 1; reserved 2; reserved \"b\";"), true, true, messageDiff, ""},
		{"reserved number used later", m3("reserved 2;"), m3("string b = 2;"), true, true, messageDiff, ""},
		{"reservation taken away", m3("reserved 2;"), m3(""), true, true, messageDiff, ""},
	}
}

func otherRules() []rule {
	return []rule{
		{"comments", m3("string a = 1;"), m3("/* new */ string a = 1; // one\n"), true, true, schemaDiff, ""},
		{"file option changed", p3("option java_package = \"a\"; message M {}"), p3("option java_package = \"b\"; message M {}"), true, true, schemaDiff, ""},
		{"field deprecated", m3("string a = 1;"), m3("string a = 1 [deprecated = true];"), true, true, fieldDiff, ""},
		{"name in JSON given", m3("string a = 1;"), m3("string a = 1 [json_name = \"b\"];"), true, true, fieldDiff, ""},
		{"default changed", m2("optional int32 a = 1 [default = 1];"), m2("optional int32 a = 1 [default = 2];"), true, true, fieldDiff, ""},
		{"packing changed", m3("repeated int32 a = 1;"), m3("repeated int32 a = 1 [packed = false];"), true, true, fieldDiff, ""},
		{"service added", p3("message M {}"), p3("message M {} service S { rpc Do (M) returns (M); }"), true, true, schemaDiff, ""},
		{"service removed", p3("message M {} service S { rpc Do (M) returns (M); }"), p3("message M {}"), true, true, schemaDiff, ""},
		{"extension added", m2("extensions 100 to 199;"), p2("package n; message M { extensions 100 to 199; } extend M { optional int32 x = 100; }"), true, true, schemaDiff, ""},
		{"extension's type changed", p2("message M { extensions 100 to 199; } extend M { optional int32 x = 100; }"), p2("message M { extensions 100 to 199; } extend M { optional string x = 100; }"), true, true, schemaDiff, ""},
		{"import added", p3("message M {}"), p3("import \"google/protobuf/any.proto\"; message M { google.protobuf.Any a = 1; }"), true, true, fieldDiff, ""},
		{"well-known type to another", p3("import \"google/protobuf/any.proto\"; message M { google.protobuf.Any a = 1; }"), p3("import \"google/protobuf/empty.proto\"; message M { google.protobuf.Empty a = 1; }"), false, false, fieldDiff, ""},
		{"well-known type to text", p3("import \"google/protobuf/wrappers.proto\"; message M { google.protobuf.StringValue a = 1; }"), p3("message M { string a = 1; }"), false, false, fieldDiff, ""},
		{"proto2 to proto3", m2("optional string a = 1; repeated int32 b = 2;"), m3("string a = 1; repeated int32 b = 2;"), true, true, fieldDiff, ""},
		{"proto2 to proto3, a number", m2("optional int32 a = 1;"), m3("int32 a = 1;"), true, true, fieldDiff, ""},
		{"proto3 to an edition", m3("string a = 1; int32 b = 2;"), ed("package n; option features.field_presence = IMPLICIT; message M { string a = 1; int32 b = 2; }"), true, true, fieldDiff, ""},
		{"proto2 to an edition, required kept", m2("required string a = 1;"), ed("package n; message M { string a = 1 [features.field_presence = LEGACY_REQUIRED]; }"), true, true, updating, ""},
		{"edition's field made required", ed("package n; message M { int32 a = 1; }"), ed("package n; message M { int32 a = 1 [features.field_presence = LEGACY_REQUIRED]; }"), false, true, updating, "it looks at no label that is not written"},
	}
}
