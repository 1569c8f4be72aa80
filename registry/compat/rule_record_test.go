package compat_test

func fieldRules() []rule {
	return []rule{
		{"same", rec(fA), rec(fA), true, true, resolution, ""},
		{"no fields", rec(``), rec(``), true, true, resolution, ""},
		{"field added with default", rec(fA), rec(fA + `,{"name":"b","type":"int","default":1}`), true, true, resolution, ""},
		{"field added without default", rec(fA), rec(fA + `,{"name":"b","type":"int"}`), false, true, resolution, ""},
		{"first field added with default", rec(``), rec(`{"name":"b","type":"int","default":1}`), true, true, resolution, ""},
		{"field with default removed", rec(fA + `,{"name":"b","type":"int","default":1}`), rec(fA), true, true, resolution, ""},
		{"field without default removed", rec(fA + `,{"name":"b","type":"int"}`), rec(fA), true, false, resolution, ""},
		{"only field removed", rec(fA), rec(``), true, false, resolution, ""},
		{"fields in another order", rec(fA + `,{"name":"b","type":"int"}`), rec(`{"name":"b","type":"int"},` + fA), true, true, resolution, ""},
		{"two fields swap types", rec(`{"name":"a","type":"int"},{"name":"b","type":"string"}`), rec(`{"name":"a","type":"string"},{"name":"b","type":"int"}`), false, false, resolution, ""},
		{"field replaced, both with defaults", rec(`{"name":"a","type":"int","default":1}`), rec(`{"name":"b","type":"int","default":1}`), true, true, resolution, ""},
		{"field replaced, the new one without default", rec(`{"name":"a","type":"int","default":1}`), rec(`{"name":"b","type":"int"}`), false, true, resolution, ""},
		{"case of a field's name", rec(`{"name":"a","type":"int"}`), rec(`{"name":"A","type":"int"}`), false, false, names, ""},
		{"field added in the middle", rec(fA + `,{"name":"z","type":"int"}`), rec(fA + `,{"name":"m","type":"string","default":""},{"name":"z","type":"int"}`), true, true, resolution, ""},
		{"one of two added fields lacks a default", rec(fA), rec(fA + `,{"name":"b","type":"int","default":1},{"name":"c","type":"int"}`), false, true, resolution, ""},
		{"record to string", rec(fA), `"string"`, false, false, resolution, ""},
		{"record to map", field(inI), field(`{"type":"map","values":"string"}`), false, false, resolution, ""},
		{"added and then made compulsory", rec(`{"name":"b","type":"int","default":1}`), rec(`{"name":"b","type":"int"}`), true, true, resolution, ""},
		{"field added, BACKWARD", rec(`{"name":"f1","type":"string"}`), rec(`{"name":"f1","type":"string"},{"name":"f2","type":"string","default":"foo"}`), true, true, confluent, ""},
		{"field added without default, BACKWARD", rec(`{"name":"f1","type":"string"}`), rec(`{"name":"f1","type":"string"},{"name":"f2","type":"string"}`), false, true, confluent, ""},
		{"field made optional", rec(`{"name":"f1","type":"string"}`), rec(`{"name":"f1","type":["null","string"]}`), true, false, confluent, ""},
		{"optional field gains a type", rec(`{"name":"f1","type":["null","string"]}`), rec(`{"name":"f1","type":["null","string","int"]}`), true, false, confluent, ""},
	}
}

func defaultRules() []rule {
	return []rule{
		{"null default that is written", rec(fA), rec(fA + `,{"name":"b","type":["null","string"],"default":null}`), true, true, records, ""},
		{"null default that is not written", rec(fA), rec(fA + `,{"name":"b","type":["null","string"]}`), false, true, records, ""},
		{"null default of a field of type null", rec(fA), rec(fA + `,{"name":"b","type":"null","default":null}`), true, true, records, ""},
		{"field of type null without default", rec(fA), rec(fA + `,{"name":"b","type":"null"}`), false, true, records, ""},
		{"optional field removed, null default written", rec(fA + `,{"name":"b","type":["null","int"],"default":null}`), rec(fA), true, true, records, ""},
		{"optional field removed, no default written", rec(fA + `,{"name":"b","type":["null","int"]}`), rec(fA), true, false, records, ""},
		{"null written later", rec(`{"name":"b","type":["null","int"]}`), rec(`{"name":"b","type":["null","int"],"default":null}`), true, true, records, ""},
		{"null taken away later", rec(`{"name":"b","type":["null","int"],"default":null}`), rec(`{"name":"b","type":["null","int"]}`), true, true, records, ""},
		{"default of the second branch's order", rec(fA), rec(fA + `,{"name":"b","type":["int","null"],"default":7}`), true, true, records, ""},
		{"default changed", rec(`{"name":"a","type":"int","default":1}`), rec(`{"name":"a","type":"int","default":2}`), true, true, resolution, ""},
		{"default taken away", rec(`{"name":"a","type":"string","default":""}`), rec(fA), true, true, resolution, ""},
		{"default given later", rec(fA), rec(`{"name":"a","type":"string","default":"x"}`), true, true, resolution, ""},
		{"empty string as default", rec(``), rec(`{"name":"a","type":"string","default":""}`), true, true, records, ""},
		{"false as default", rec(``), rec(`{"name":"a","type":"boolean","default":false}`), true, true, records, ""},
		{"zero as default", rec(``), rec(`{"name":"a","type":"int","default":0}`), true, true, records, ""},
		{"empty array as default", rec(``), rec(`{"name":"a","type":{"type":"array","items":"int"},"default":[]}`), true, true, records, ""},
		{"empty map as default", rec(``), rec(`{"name":"a","type":{"type":"map","values":"int"},"default":{}}`), true, true, records, ""},
		{"record as default", rec(``), rec(`{"name":"a","type":{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]},"default":{"x":1}}`), true, true, records, ""},
		{"record as default that counts on its fields' own", rec(``), rec(`{"name":"a","type":{"type":"record","name":"I","fields":[{"name":"x","type":"int","default":1}]},"default":{}}`), true, true, records, ""},
		{"bytes as default", rec(``), rec(`{"name":"a","type":"bytes","default":"\u00ff"}`), true, true, records, ""},
		{"fixed as default", rec(``), rec(`{"name":"a","type":{"type":"fixed","name":"F","size":1},"default":"\u00ff"}`), true, true, records, ""},
		{"enum symbol as default", rec(``), rec(`{"name":"a","type":{"type":"enum","name":"E","symbols":["A"]},"default":"A"}`), true, true, records, ""},
		{"null default inside of an added record", rec(``), rec(`{"name":"a","type":["null",{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]}],"default":null}`), true, true, records, ""},
		{"default of the second branch", rec(fA), rec(fA + `,{"name":"b","type":["null","string"],"default":"x"}`), true, true, records, ""},
		{"text null as default", rec(fA), rec(fA + `,{"name":"b","type":["null","string"],"default":"null"}`), true, true, records, ""},
		{"an int as default of a double", rec(``), rec(`{"name":"a","type":"double","default":1}`), true, true, records, ""},
	}
}

func attributeRules() []rule {
	return []rule{
		{"documentation of the record changed", rec(fA), `{"type":"record","name":"T","namespace":"n","doc":"new","fields":[` + fA + `]}`, true, true, resolution, ""},
		{"documentation of a field changed", rec(`{"name":"a","type":"string","doc":"old"}`), rec(`{"name":"a","type":"string","doc":"new"}`), true, true, resolution, ""},
		{"sort order of a field changed", rec(`{"name":"a","type":"string","order":"ascending"}`), rec(`{"name":"a","type":"string","order":"ignore"}`), true, true, resolution, ""},
		{"property of its own added", rec(fA), rec(`{"name":"a","type":"string","owner":"billing"}`), true, true, resolution, ""},
		{"property of a type added", rec(fA), rec(`{"name":"a","type":{"type":"string","avro.java.string":"String"}}`), true, true, resolution, ""},
		{"a type written as an object", rec(fA), rec(`{"name":"a","type":{"type":"string"}}`), true, true, resolution, ""},
		{"default changed and documentation with it", rec(`{"name":"a","type":"int","default":1,"doc":"x"}`), rec(`{"name":"a","type":"int","default":3,"doc":"y"}`), true, true, resolution, ""},
	}
}
