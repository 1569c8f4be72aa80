package compat_test

func nameRules() []rule {
	const plain = `"fields":[{"name":"a","type":"string"}]}`
	return []rule{
		{"namespace in the name", rec(fA), `{"type":"record","name":"n.T",` + plain, true, true, names, ""},
		{"a namespace that a full name overrules", rec(fA), `{"type":"record","name":"n.T","namespace":"elsewhere",` + plain, true, true, names, ""},
		{"another record", rec(fA), `{"type":"record","name":"U","namespace":"n",` + plain, false, false, resolution, ""},
		{"another namespace", rec(fA), `{"type":"record","name":"T","namespace":"m",` + plain, true, true, resolution, ""},
		{"no namespace any longer", rec(fA), `{"type":"record","name":"T",` + plain, true, true, resolution, ""},
		{"inner record inherits the namespace", field(inI), field(`{"type":"record","name":"n.I","fields":[]}`), true, true, names, ""},
		{"inner record with a namespace of its own", field(inI), field(`{"type":"record","name":"I","namespace":"m","fields":[]}`), true, true, resolution, ""},
		{"inner record of another name", field(inI), field(`{"type":"record","name":"J","fields":[]}`), false, false, resolution, ""},
		{"a name used twice", rec(`{"name":"a","type":` + inI + `},{"name":"b","type":"I"}`), rec(`{"name":"a","type":` + inI + `},{"name":"b","type":"n.I"}`), true, true, names, ""},
		{"the definition moves to the other field", rec(`{"name":"a","type":` + inI + `},{"name":"b","type":"I"}`), rec(`{"name":"b","type":` + inI + `},{"name":"a","type":"I"}`), true, true, names, ""},
		{"case of a record's name", rec(fA), `{"type":"record","name":"t","namespace":"n",` + plain, false, false, names, ""},
		{"fixed in another namespace", field(`{"type":"fixed","name":"x.F","size":4}`), field(`{"type":"fixed","name":"y.F","size":4}`), true, true, resolution, ""},
		{"enum in another namespace", field(`{"type":"enum","name":"x.E","symbols":["A"]}`), field(`{"type":"enum","name":"y.E","symbols":["A"]}`), true, true, resolution, ""},
	}
}

func aliasRules() []rule {
	aliased := func(as string) string {
		return `{"type":"record","name":"U","namespace":"n","aliases":[` + as + `],"fields":[` + fA + `]}`
	}
	return []rule{
		{"field renamed with alias", rec(fA), rec(`{"name":"z","type":"string","aliases":["a"]}`), true, false, aliases, ""},
		{"field renamed without alias", rec(fA), rec(`{"name":"z","type":"string"}`), false, false, aliases, ""},
		{"field renamed with a default and no alias", rec(`{"name":"a","type":"string","default":""}`), rec(`{"name":"z","type":"string","default":""}`), true, true, resolution, ""},
		{"field renamed and promoted", rec(`{"name":"a","type":"int"}`), rec(`{"name":"z","type":"long","aliases":["a"]}`), true, false, aliases, ""},
		{"field renamed to another type", rec(`{"name":"a","type":"int"}`), rec(`{"name":"z","type":"string","aliases":["a"]}`), false, false, aliases, ""},
		{"field renamed, the second alias is meant", rec(fA), rec(`{"name":"z","type":"string","aliases":["y","a"]}`), true, false, aliases, ""},
		{"an alias that is not needed", rec(fA), rec(`{"name":"a","type":"string","aliases":["older"]}`), true, true, aliases, ""},
		{"record renamed with alias", rec(fA), aliased(`"T"`), true, false, aliases, ""},
		{"record renamed with alias in full", rec(fA), aliased(`"n.T"`), true, false, aliases, ""},
		{"record renamed with another alias", rec(fA), aliased(`"V"`), false, false, aliases, ""},
		{"record renamed with several aliases", rec(fA), aliased(`"V","T"`), true, false, aliases, ""},
		{"inner record renamed with alias", field(inI), field(`{"type":"record","name":"J","aliases":["I"],"fields":[]}`), true, false, aliases, ""},
		{"record in a union renamed with alias", field(`["null",` + inI + `]`), field(`["null",{"type":"record","name":"J","aliases":["I"],"fields":[]}]`), true, false, aliases, ""},
		{"record in a union renamed without alias", field(`["null",` + inI + `]`), field(`["null",{"type":"record","name":"J","fields":[]}]`), false, false, aliases, ""},
		{"enum in a union renamed with alias", field(`["null",{"type":"enum","name":"E","symbols":["A"]}]`), field(`["null",{"type":"enum","name":"F","aliases":["E"],"symbols":["A"]}]`), true, false, aliases, ""},
		{"alias in the writer only", aliased(`"T"`), rec(fA), false, true, aliases, ""},
		{"field alias, FORWARD", rec(`{"name":"f1","type":"string"}`), rec(`{"name":"f1_new","type":"string","aliases":["f1"]}`), true, false, confluent, ""},
	}
}
