package compat_test

func unionRules() []rule {
	wide := `{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]}`
	wider := `{"type":"record","name":"I","fields":[{"name":"x","type":"int","default":0}]}`
	return []rule{
		{"union, same", field(`["null","string"]`), field(`["null","string"]`), true, true, resolution, ""},
		{"union in another order", field(`["null","string"]`), field(`["string","null"]`), true, true, resolution, ""},
		{"union gains a type", field(`["null","string"]`), field(`["null","string","long"]`), true, false, resolution, ""},
		{"union loses a type", field(`["null","string","long"]`), field(`["null","string"]`), false, true, resolution, ""},
		{"made optional, null default", field(`"string"`), rec(`{"name":"f","type":["null","string"],"default":null}`), true, false, resolution, ""},
		{"made compulsory", field(`["null","string"]`), field(`"string"`), false, true, resolution, ""},
		{"union of one", field(`"int"`), field(`["int"]`), true, true, resolution, ""},
		{"union of one, another", field(`"int"`), field(`["boolean"]`), false, false, resolution, ""},
		{"into a union, promoted", field(`"int"`), field(`["null","long"]`), true, false, resolution, ""},
		{"out of a union, all promoted", field(`["int","float"]`), field(`"double"`), true, false, resolution, ""},
		{"out of a union, not all", field(`["int","boolean"]`), field(`"double"`), false, false, resolution, ""},
		{"union of numbers to a wider union", field(`["int","long"]`), field(`["float","double"]`), true, false, resolution, ""},
		{"union to a union, one promoted", field(`["null","int"]`), field(`["null","double"]`), true, false, resolution, ""},
		{"string into a union with bytes", field(`"string"`), field(`["null","bytes"]`), true, false, resolution, ""},
		{"record in a union gains a field with default", field(`["null",` + inI + `]`), field(`["null",` + wider + `]`), true, true, resolution, ""},
		{"record in a union gains a field without default", field(`["null",` + inI + `]`), field(`["null",` + wide + `]`), false, true, resolution, ""},
		{"record in a union loses a field", field(`["null",` + wide + `]`), field(`["null",` + inI + `]`), true, false, resolution, ""},
		{"record into a union", field(inI), field(`["null",` + inI + `]`), true, false, resolution, ""},
		{"record into a union with another record first", field(inI), field(`[{"type":"record","name":"J","fields":[]},` + inI + `]`), true, false, resolution, ""},
		{"one of two records in a union goes", field(`[` + inI + `,{"type":"record","name":"J","fields":[]}]`), field(`[` + inI + `]`), false, true, resolution, ""},
		{"array into a union", field(`{"type":"array","items":"int"}`), field(`["null",{"type":"array","items":"int"}]`), true, false, resolution, ""},
		{"array in a union, element promoted", field(`["null",{"type":"array","items":"int"}]`), field(`["null",{"type":"array","items":"long"}]`), true, false, resolution, ""},
		{"array in a union, element of another type", field(`["null",{"type":"array","items":"int"}]`), field(`["null",{"type":"array","items":"string"}]`), false, false, resolution, ""},
		{"map in a union, value promoted", field(`["null",{"type":"map","values":"int"}]`), field(`["null",{"type":"map","values":"float"}]`), true, false, resolution, ""},
		{"fixed in a union of another size", field(`["null",{"type":"fixed","name":"F","size":4}]`), field(`["null",{"type":"fixed","name":"F","size":8}]`), false, false, resolution, ""},
		{"top is a union that gains a type", `["null","int"]`, `["null","int","string"]`, true, false, confluent, ""},
		{"enum in a union loses a symbol", field(`["null",{"type":"enum","name":"E","symbols":["A","B"]}]`), field(`["null",{"type":"enum","name":"E","symbols":["A"]}]`), false, true, resolution, ""},
		{"the empty union reads nothing", field(`"int"`), field(`[]`), false, true, java, ""},
	}
}

func nestedRules() []rule {
	deep := func(fields string) string {
		return field(`{"type":"record","name":"M","fields":[{"name":"m","type":{"type":"record","name":"I","fields":[` + fields + `]}}]}`)
	}
	list := func(fields string) string {
		return `{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"],"default":null}` + fields + `]}`
	}
	tree := func(value string) string {
		return `{"type":"record","name":"N","fields":[{"name":"v","type":` + value + `},{"name":"sub","type":{"type":"array","items":"N"}}]}`
	}
	mutual := func(typ string) string {
		return `{"type":"record","name":"A","fields":[{"name":"b","type":["null",{"type":"record","name":"B","fields":[{"name":"a","type":["null","A"]},{"name":"x","type":` + typ + `}]}]}]}`
	}
	return []rule{
		{"deep record gains a field with default", deep(fA), deep(fA + `,{"name":"b","type":"int","default":1}`), true, true, resolution, ""},
		{"deep record gains a field without default", deep(fA), deep(fA + `,{"name":"b","type":"int"}`), false, true, resolution, ""},
		{"deep record loses a field", deep(fA + `,{"name":"b","type":"int"}`), deep(fA), true, false, resolution, ""},
		{"deep type promoted", deep(`{"name":"b","type":"int"}`), deep(`{"name":"b","type":"double"}`), true, false, resolution, ""},
		{"deep type changed", deep(`{"name":"b","type":"int"}`), deep(`{"name":"b","type":"string"}`), false, false, resolution, ""},
		{"recursive record, same", list(``), list(``), true, true, names, ""},
		{"recursive record gains a field with default", list(``), list(`,{"name":"x","type":"int","default":0}`), true, true, names, ""},
		{"recursive record gains a field without default", list(``), list(`,{"name":"x","type":"int"}`), false, true, names, ""},
		{"tree, value promoted", tree(`"int"`), tree(`"long"`), true, false, names, ""},
		{"tree, value of another type", tree(`"int"`), tree(`"boolean"`), false, false, names, ""},
		{"two records that hold each other, promoted", mutual(`"int"`), mutual(`"long"`), true, false, names, ""},
		{"two records that hold each other, changed", mutual(`"int"`), mutual(`"boolean"`), false, false, names, ""},
		{"recursion unrolled once", list(``), `{"type":"record","name":"L","fields":[{"name":"next","type":["null",{"type":"record","name":"x.L","fields":[{"name":"next","type":["null","x.L"],"default":null}]}],"default":null}]}`, true, true, resolution, ""},
		{"a record used twice, one use is broken", rec(`{"name":"a","type":` + inI + `},{"name":"b","type":"I"}`), rec(`{"name":"a","type":` + inI + `},{"name":"b","type":"string"}`), false, false, resolution, ""},
	}
}
