package jsonschema_test

import "github.com/waybillhq/waybill/registry/jsonschema"

func typeRules() []rule {
	return []rule{
		{"same", `{"type":"string"}`, `{"type":"string"}`, fine, fine, types},
		{"another type", `{"type":"string"}`, `{"type":"number"}`, jsonschema.TypeChanged, jsonschema.TypeChanged, types},
		{"boolean to null", `{"type":"boolean"}`, `{"type":"null"}`, jsonschema.TypeChanged, jsonschema.TypeChanged, types},
		{"integer widened to number", `{"type":"integer"}`, `{"type":"number"}`, fine, jsonschema.TypeNarrowed, nums},
		{"anything narrowed to a type", `{}`, `{"type":"string"}`, jsonschema.TypeChanged, fine, types},
		{"true is as the empty schema", `true`, `{}`, fine, fine, types},
		{"false takes nothing", `{"type":"string"}`, `false`, jsonschema.TypeChanged, fine, types},
		{"false to true", `false`, `true`, fine, jsonschema.TypeChanged, types},
		{"a second type", `{"type":"string"}`, `{"type":["string","null"]}`, fine, jsonschema.TypeChanged, types},
		{"a third type", `{"type":["string","null"]}`, `{"type":["string","null","integer"]}`, fine, jsonschema.SumNarrowed, combos},
		{"one type for another among several", `{"type":["string","null"]}`, `{"type":["integer","null"]}`, jsonschema.SubschemasChanged, jsonschema.SubschemasChanged, combos},
		{"integer widened among several", `{"type":["integer","null"]}`, `{"type":["number","null"]}`, fine, jsonschema.SubschemasChanged, combos},
		{"types in another order", `{"type":["string","null"]}`, `{"type":["null","string"]}`, fine, fine, combos},
		{"a list of one type", `{"type":"string"}`, `{"type":["string"]}`, fine, fine, types},
		{"title, description, default and $id say nothing of values", `{"type":"string"}`, `{"$id":"x","title":"t","description":"d","default":"x","type":"string"}`, fine, fine, types},
		{"keywords nobody knows say nothing", `{"type":"string"}`, `{"type":"string","x-unit":"kg","examples":["a"],"$comment":"c"}`, fine, fine, types},
		{"format says nothing", `{"type":"string"}`, `{"type":"string","format":"email"}`, fine, fine, "Confluent, SchemaTranslator, for drafts from 2019-09 on"},
		{"bytes of Connect under two types", `{"type":"number","connect.type":"bytes"}`, `{"type":"string","connect.type":"bytes"}`, fine, fine, connect},
		{"if, then and else are not looked into", `{"if":{"type":"string"},"then":{"maxLength":5}}`, `{"if":{"type":"string"},"then":{"maxLength":3}}`, fine, fine, types},
		{"conditions come", `{"type":"string"}`, `{"type":"string","if":{"minLength":1},"then":{"maxLength":3}}`, jsonschema.TypeChanged, fine, types},
	}
}

func stringRules() []rule {
	const plain, some = `{"type":"string"}`, `{"type":"string","maxLength":5,"minLength":2,"pattern":"^a"}`
	return []rule{
		{"maxLength comes", plain, `{"type":"string","maxLength":5}`, jsonschema.MaxLengthAdded, fine, strs},
		{"maxLength grows", some, `{"type":"string","maxLength":6,"minLength":2,"pattern":"^a"}`, fine, jsonschema.MaxLengthDecreased, strs},
		{"minLength comes", plain, `{"type":"string","minLength":5}`, jsonschema.MinLengthAdded, fine, strs},
		{"minLength grows", some, `{"type":"string","maxLength":5,"minLength":3,"pattern":"^a"}`, jsonschema.MinLengthIncreased, fine, strs},
		{"pattern comes", plain, `{"type":"string","pattern":"^a"}`, jsonschema.PatternAdded, fine, strs},
		{"pattern changes", some, `{"type":"string","maxLength":5,"minLength":2,"pattern":"^b"}`, jsonschema.PatternChanged, jsonschema.PatternChanged, strs},
		{"all of a string's bounds go", some, plain, fine, jsonschema.PatternAdded, strs},
		{"a bound without a type is a string's", `{"maxLength":5}`, `{"type":"string","maxLength":5}`, fine, fine, strs},
		{"a pattern with lookahead is compared by its text", `{"type":"string","pattern":"^(?!x)a"}`, `{"type":"string","pattern":"^(?!y)a"}`, jsonschema.PatternChanged, jsonschema.PatternChanged, strs},
	}
}

func numberRules() []rule {
	const plain = `{"type":"number"}`
	with := func(bound string) string { return `{"type":"number",` + bound + `}` }
	return []rule{
		{"maximum comes", plain, with(`"maximum":5`), jsonschema.MaximumAdded, fine, nums},
		{"maximum grows", with(`"maximum":5`), with(`"maximum":5.5`), fine, jsonschema.MaximumDecreased, nums},
		{"maximum, written otherwise", with(`"maximum":5`), with(`"maximum":5.0`), fine, fine, nums},
		{"minimum comes", plain, with(`"minimum":5`), jsonschema.MinimumAdded, fine, nums},
		{"minimum grows", with(`"minimum":-5`), with(`"minimum":-4`), jsonschema.MinimumIncreased, fine, nums},
		{"exclusiveMaximum comes", plain, with(`"exclusiveMaximum":5`), jsonschema.ExclusiveMaxAdded, fine, nums},
		{"exclusiveMaximum grows", with(`"exclusiveMaximum":5`), with(`"exclusiveMaximum":6`), fine, jsonschema.ExclusiveMaxDecreased, nums},
		{"exclusiveMinimum comes", plain, with(`"exclusiveMinimum":5`), jsonschema.ExclusiveMinAdded, fine, nums},
		{"exclusiveMinimum grows", with(`"exclusiveMinimum":5`), with(`"exclusiveMinimum":6`), jsonschema.ExclusiveMinIncreased, fine, nums},
		{"multipleOf comes", plain, with(`"multipleOf":5`), jsonschema.MultipleOfAdded, fine, nums},
		{"multipleOf is divided", with(`"multipleOf":10`), with(`"multipleOf":5`), fine, jsonschema.MultipleOfExpanded, nums},
		{"multipleOf with fractions is divided", with(`"multipleOf":10`), with(`"multipleOf":0.5`), fine, jsonschema.MultipleOfExpanded, nums},
		{"multipleOf, written otherwise", with(`"multipleOf":0.5`), with(`"multipleOf":0.50`), fine, fine, nums},
		{"multipleOf changes", with(`"multipleOf":10`), with(`"multipleOf":3`), jsonschema.MultipleOfChanged, jsonschema.MultipleOfChanged, nums},
		{"bounds differ past what a float holds", with(`"maximum":9007199254740993`), with(`"maximum":9007199254740992`), jsonschema.MaximumDecreased, fine, ours},
	}
}

func enumRules() []rule {
	return []rule{
		{"enum gains a value", `{"enum":["a","b"]}`, `{"enum":["a","b","c"]}`, fine, jsonschema.EnumNarrowed, enums},
		{"enum changes", `{"enum":["a","b"]}`, `{"enum":["a","c"]}`, jsonschema.EnumChanged, jsonschema.EnumChanged, enums},
		{"enum in another order", `{"enum":["a","b"]}`, `{"enum":["b","a"]}`, fine, fine, enums},
		{"enum of objects", `{"enum":[{"a":1,"b":2}]}`, `{"enum":[{"b":2.0,"a":1},null]}`, fine, jsonschema.EnumNarrowed, enums},
		{"enum with a type gains a value", `{"type":"string","enum":["a"]}`, `{"type":"string","enum":["a","b"]}`, fine, jsonschema.SubschemasChanged, combos},
		{"enum comes to a type", `{"type":"string"}`, `{"type":"string","enum":["a"]}`, jsonschema.TypeChanged, fine, types},
		{"const changes", `{"const":"a"}`, `{"const":"b"}`, jsonschema.EnumChanged, jsonschema.EnumChanged, consts},
		{"const of null stays", `{"const":null}`, `{"const":null}`, fine, fine, ours},
		{"const becomes enum", `{"const":"a"}`, `{"enum":["a","b"]}`, jsonschema.TypeChanged, jsonschema.TypeChanged, types},
	}
}
