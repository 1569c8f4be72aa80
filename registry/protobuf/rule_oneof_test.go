package protobuf_test

func oneofRules() []rule {
	return []rule{
		{"oneof added", m3(""), m3("oneof o { string a = 1; }"), true, true, messageDiff, ""},
		{"oneof removed as a whole", m3("oneof o { string a = 1; int32 b = 2; }"), m3(""), true, true, messageDiff, ""},
		{"member added", m3("oneof o { string a = 1; }"), m3("oneof o { string a = 1; int32 b = 2; }"), true, false, examples, ""},
		{"member removed", m3("oneof o { string a = 1; int32 b = 2; }"), m3("oneof o { string a = 1; }"), false, true, examples, ""},
		{"member renamed", m3("oneof o { string a = 1; }"), m3("oneof o { string b = 1; }"), true, true, messageDiff, ""},
		{"member's type changed", m3("oneof o { string a = 1; }"), m3("oneof o { int32 a = 1; }"), false, false, fieldDiff, ""},
		{"one field moved to a new oneof", m3("string a = 1; string b = 2;"), m3("string a = 1; oneof o { string b = 2; }"), true, true, examples, ""},
		{"one field moved to a new oneof beside a new one", m3("string a = 1; string b = 2;"), m3("string a = 1; oneof o { string b = 2; int32 c = 3; }"), true, false, examples, ""},
		{"two fields moved to a new oneof", m3("string a = 1; string b = 2;"), m3("oneof o { string a = 1; string b = 2; }"), false, true, examples, ""},
		{"two fields moved beside a new one", m3("string a = 1; string b = 2;"), m3("oneof o { string a = 1; string b = 2; int32 c = 3; }"), false, false, examples, ""},
		{"field moved to a oneof that was there", m3("string a = 1; oneof o { string b = 2; string c = 3; }"), m3("oneof o { string a = 1; string b = 2; string c = 3; }"), false, true, examples, ""},
		{"field moved to a oneof that was renamed", m3("string a = 1; oneof o { string b = 2; string c = 3; }"), m3("oneof p { string a = 1; string b = 2; string c = 3; }"), false, true, examples, ""},
		{"member moved out", m3("oneof o { int32 a = 1; int32 b = 2; }"), m3("oneof o { int32 a = 1; } int32 b = 2;"), true, false, examples, ""},
		{"all members moved out", m3("oneof o { int32 a = 1; int32 b = 2; }"), m3("int32 a = 1; int32 b = 2;"), true, false, messageDiff, ""},
		{"member moved out with another type", m3("oneof o { int32 a = 1; int32 b = 2; }"), m3("oneof o { int32 a = 1; } string b = 2;"), false, false, examples, ""},
		{"oneof renamed", m3("oneof o { float a = 1; int32 b = 2; }"), m3("oneof p { float a = 1; int32 b = 2; }"), true, true, examples, ""},
		{"oneof renamed and a type changed", m3("oneof o { float a = 1; int32 b = 2; }"), m3("oneof p { float a = 1; string b = 2; }"), false, false, examples, ""},
		{"oneof taken apart and a type changed", m3("oneof o { float a = 1; int32 b = 2; }"), m3("float a = 1; sint64 b = 2;"), false, false, examples, ""},
		{"type changed on the way into a oneof", m3("float a = 1; int32 b = 2;"), m3("float a = 1; oneof o { sint64 b = 2; }"), false, false, examples, ""},
		{"member moved between oneofs", m3("oneof o { int32 a = 1; int32 b = 2; } oneof p { int32 c = 3; }"), m3("oneof o { int32 a = 1; } oneof p { int32 c = 3; int32 b = 2; }"), false, false, examples, ""},
		{"oneofs merged", m3("oneof o { int32 a = 1; } oneof p { int32 b = 2; }"), m3("oneof q { int32 a = 1; int32 b = 2; }"), false, true, examples, ""},
		{"member alone in a new oneof", m3("oneof o { int32 a = 1; int32 b = 2; }"), m3("oneof o { int32 b = 2; } oneof p { int32 a = 1; }"), true, false, examples, ""},
		{"member dropped as the oneof is renamed", m3("oneof o { int32 a = 1; int32 b = 2; }"), m3("oneof p { int32 a = 1; }"), false, true, examples, ""},
		{"field optional to a member", m3("optional int32 a = 1;"), m3("oneof o { int32 a = 1; }"), true, true, fieldDiff, ""},
	}
}
