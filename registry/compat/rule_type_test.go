package compat_test

func typeRules() []rule {
	return []rule{
		{"int to long", field(`"int"`), field(`"long"`), true, false, resolution, ""},
		{"int to float", field(`"int"`), field(`"float"`), true, false, resolution, ""},
		{"int to double", field(`"int"`), field(`"double"`), true, false, resolution, ""},
		{"long to float", field(`"long"`), field(`"float"`), true, false, resolution, ""},
		{"long to double", field(`"long"`), field(`"double"`), true, false, resolution, ""},
		{"float to double", field(`"float"`), field(`"double"`), true, false, resolution, ""},
		{"string to bytes and back", field(`"string"`), field(`"bytes"`), true, true, resolution, ""},
		{"int to string", field(`"int"`), field(`"string"`), false, false, resolution, ""},
		{"long to string", field(`"long"`), field(`"string"`), false, false, resolution, ""},
		{"int to boolean", field(`"int"`), field(`"boolean"`), false, false, resolution, ""},
		{"boolean to string", field(`"boolean"`), field(`"string"`), false, false, resolution, ""},
		{"double to string", field(`"double"`), field(`"string"`), false, false, resolution, ""},
		{"null to int", field(`"null"`), field(`"int"`), false, false, resolution, ""},
		{"int to bytes", field(`"int"`), field(`"bytes"`), false, false, resolution, ""},
		{"top is a primitive", `"int"`, `"long"`, true, false, resolution, ""},
		{"top is another primitive", `"int"`, `"boolean"`, false, false, resolution, ""},
		{"string to enum", field(`"string"`), field(`{"type":"enum","name":"E","symbols":["A"]}`), false, false, resolution, ""},
		{"string to fixed", field(`"string"`), field(`{"type":"fixed","name":"F","size":4}`), false, false, resolution, ""},
		{"bytes to fixed", field(`"bytes"`), field(`{"type":"fixed","name":"F","size":4}`), false, false, resolution, ""},
		{"fixed, same", field(`{"type":"fixed","name":"F","size":4}`), field(`{"type":"fixed","name":"F","size":4}`), true, true, resolution, ""},
		{"fixed of another size", field(`{"type":"fixed","name":"F","size":4}`), field(`{"type":"fixed","name":"F","size":8}`), false, false, resolution, ""},
		{"fixed of another name", field(`{"type":"fixed","name":"F","size":4}`), field(`{"type":"fixed","name":"G","size":4}`), false, false, resolution, ""},
		{"fixed renamed with alias", field(`{"type":"fixed","name":"F","size":4}`), field(`{"type":"fixed","name":"G","aliases":["F"],"size":4}`), true, false, aliases, ""},
		{"array, element promoted", field(`{"type":"array","items":"int"}`), field(`{"type":"array","items":"long"}`), true, false, resolution, ""},
		{"array, element of another type", field(`{"type":"array","items":"int"}`), field(`{"type":"array","items":"string"}`), false, false, resolution, ""},
		{"array, element made optional", field(`{"type":"array","items":"int"}`), field(`{"type":"array","items":["null","int"]}`), true, false, resolution, ""},
		{"array of arrays, promoted", field(`{"type":"array","items":{"type":"array","items":"int"}}`), field(`{"type":"array","items":{"type":"array","items":"double"}}`), true, false, resolution, ""},
		{"array to its element", field(`{"type":"array","items":"int"}`), field(`"int"`), false, false, resolution, ""},
		{"array to map", field(`{"type":"array","items":"int"}`), field(`{"type":"map","values":"int"}`), false, false, resolution, ""},
		{"map, value promoted", field(`{"type":"map","values":"float"}`), field(`{"type":"map","values":"double"}`), true, false, resolution, ""},
		{"map, value of another type", field(`{"type":"map","values":"int"}`), field(`{"type":"map","values":"boolean"}`), false, false, resolution, ""},
		{"map of records that gain a field", field(`{"type":"map","values":` + inI + `}`), field(`{"type":"map","values":{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]}}`), false, true, resolution, ""},
		{"array of records that gain a field with default", field(`{"type":"array","items":` + inI + `}`), field(`{"type":"array","items":{"type":"record","name":"I","fields":[{"name":"x","type":"int","default":0}]}}`), true, true, resolution, ""},
	}
}

func enumRules() []rule {
	e := func(symbols, rest string) string {
		return field(`{"type":"enum","name":"E","symbols":[` + symbols + `]` + rest + `}`)
	}
	return []rule{
		{"enum, same", e(`"A","B"`, ``), e(`"A","B"`, ``), true, true, resolution, ""},
		{"enum symbols in another order", e(`"A","B"`, ``), e(`"B","A"`, ``), true, true, resolution, ""},
		{"enum symbol added without default", e(`"A"`, ``), e(`"A","B"`, ``), true, false, resolution, ""},
		{"enum symbol added with default", e(`"A"`, `,"default":"A"`), e(`"A","B"`, `,"default":"A"`), true, true, enums, ""},
		{"enum symbol removed without default", e(`"A","B"`, ``), e(`"A"`, ``), false, true, resolution, ""},
		{"enum symbol removed with default", e(`"A","B"`, `,"default":"A"`), e(`"A"`, `,"default":"A"`), true, true, enums, ""},
		{"enum default given with the removal", e(`"A","B"`, ``), e(`"A"`, `,"default":"A"`), true, true, enums, ""},
		{"enum default taken away with the addition", e(`"A"`, `,"default":"A"`), e(`"A","B"`, ``), true, true, enums, ""},
		{"enum default changed", e(`"A","B"`, `,"default":"A"`), e(`"A","B"`, `,"default":"B"`), true, true, enums, ""},
		{"enum default that only the field has", e(`"A","B"`, ``), rec(`{"name":"f","type":{"type":"enum","name":"E","symbols":["A"]},"default":"A"}`), false, true, enums, ""},
		{"enum symbols replaced without default", e(`"A"`, ``), e(`"B"`, ``), false, false, resolution, ""},
		{"enum symbols replaced with defaults", e(`"A"`, `,"default":"A"`), e(`"B"`, `,"default":"B"`), true, true, enums, ""},
		{"enum symbol of another case", e(`"A"`, ``), e(`"a"`, ``), false, false, names, ""},
		{"enum of another name", e(`"A"`, ``), field(`{"type":"enum","name":"F","symbols":["A"]}`), false, false, resolution, ""},
		{"enum renamed with alias", e(`"A"`, ``), field(`{"type":"enum","name":"F","aliases":["E"],"symbols":["A"]}`), true, false, aliases, ""},
		{"enum to string", e(`"A"`, ``), field(`"string"`), false, false, resolution, ""},
		{"enum in an array loses a symbol", field(`{"type":"array","items":{"type":"enum","name":"E","symbols":["A","B"]}}`), field(`{"type":"array","items":{"type":"enum","name":"E","symbols":["A"]}}`), false, true, resolution, ""},
		{"enum in a union gains a symbol", field(`["null",{"type":"enum","name":"E","symbols":["A"]}]`), field(`["null",{"type":"enum","name":"E","symbols":["A","B"]}]`), true, false, resolution, ""},
	}
}

func logicalRules() []rule {
	decimal := func(precision, scale string) string {
		return field(`{"type":"bytes","logicalType":"decimal","precision":` + precision + `,"scale":` + scale + `}`)
	}
	const stricter = "it does not look at logical types; the specification wants precision and scale to match, and who reads 1.23 as 12.3 has lost money"
	return []rule{
		{"logical type added", field(`"long"`), field(`{"type":"long","logicalType":"timestamp-millis"}`), true, true, logical, ""},
		{"logical type changed", field(`{"type":"long","logicalType":"timestamp-millis"}`), field(`{"type":"long","logicalType":"timestamp-micros"}`), true, true, logical, ""},
		{"logical type that nobody knows", field(`"int"`), field(`{"type":"int","logicalType":"bananas"}`), true, true, logical, ""},
		{"logical type over a promotion", field(`{"type":"int","logicalType":"date"}`), field(`{"type":"long","logicalType":"timestamp-millis"}`), true, false, logical, ""},
		{"uuid from string", field(`"string"`), field(`{"type":"string","logicalType":"uuid"}`), true, true, logical, ""},
		{"decimal, same", decimal(`9`, `2`), decimal(`9`, `2`), true, true, logical, ""},
		{"decimal of another scale", decimal(`9`, `2`), decimal(`9`, `3`), false, false, logical, stricter},
		{"decimal of another precision", decimal(`9`, `2`), decimal(`12`, `2`), false, false, logical, stricter},
		{"decimal from bytes", field(`"bytes"`), decimal(`9`, `2`), true, true, logical, ""},
		{"decimal in fixed, same", field(`{"type":"fixed","name":"F","size":4,"logicalType":"decimal","precision":5}`), field(`{"type":"fixed","name":"F","size":4,"logicalType":"decimal","precision":5}`), true, true, logical, ""},
		{"date to time", field(`{"type":"int","logicalType":"date"}`), field(`{"type":"int","logicalType":"time-millis"}`), true, true, logical, ""},
	}
}
