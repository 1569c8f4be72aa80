package jsonschema_test

import "github.com/waybillhq/waybill/registry/jsonschema"

func combinedRules() []rule {
	const s, i, n, short = `{"type":"string"}`, `{"type":"integer"}`, `{"type":"number"}`, `{"type":"string","maxLength":3}`
	of := func(keyword, parts string) string { return `{"` + keyword + `":[` + parts + `]}` }
	return []rule{
		{"oneOf gains an alternative", of("oneOf", s), of("oneOf", s+","+i), fine, jsonschema.SumNarrowed, combos},
		{"anyOf gains an alternative", of("anyOf", s+","+i), of("anyOf", i+","+s+`,{"type":"null"}`), fine, jsonschema.SumNarrowed, combos},
		{"allOf gains a condition", of("allOf", s), of("allOf", s+`,{"maxLength":3}`), jsonschema.ProductExtended, fine, combos},
		{"alternatives in another order", of("oneOf", s+","+i), of("oneOf", i+","+s), fine, fine, combos},
		{"an alternative widened", of("oneOf", s+","+i), of("oneOf", s+","+n), fine, jsonschema.SubschemasChanged, combos},
		{"an alternative changed", of("oneOf", s+","+i), of("oneOf", s+`,{"type":"boolean"}`), jsonschema.SubschemasChanged, jsonschema.SubschemasChanged, combos},
		{"an alternative twice counts once", of("oneOf", s+","+s), of("oneOf", s), fine, fine, combos},
		{"two alternatives cannot go to one", of("anyOf", short+","+i), of("anyOf", s+`,{"type":"boolean"}`), jsonschema.SubschemasChanged, jsonschema.SubschemasChanged, combos},
		{"a pair is given up for a larger matching", of("anyOf", short+`,{"type":"string","maxLength":5}`), of("anyOf", `{"type":"string","maxLength":6},{"type":"string","maxLength":4}`), fine, jsonschema.SubschemasChanged, combos},
		{"oneOf becomes anyOf", of("oneOf", s+","+i), of("anyOf", s+","+i), fine, jsonschema.CombinedChanged, combos},
		{"allOf becomes anyOf", of("allOf", s+`,{"maxLength":3}`), of("anyOf", s+`,{"maxLength":3}`), fine, jsonschema.CombinedChanged, combos},
		{"allOf of one becomes oneOf", of("allOf", s), of("oneOf", s+","+i), fine, jsonschema.CombinedChanged, combos},
		{"a schema becomes one of several", s, of("oneOf", s+","+i), fine, jsonschema.TypeChanged, types},
		{"a schema becomes one of several others", s, of("oneOf", n+","+i), jsonschema.TypeChanged, jsonschema.TypeChanged, types},
		{"a schema becomes the only alternative", s, of("anyOf", s), fine, fine, types},
		{"a schema gets a condition", s, of("allOf", s+`,{"maxLength":3}`), jsonschema.TypeChanged, fine, types},
		{"a condition goes and the type stays", of("allOf", s+","+`{"enum":["a"]}`), s, fine, jsonschema.TypeChanged, types},
		{"a type beside a combination", `{"type":"object","oneOf":[` + obj(propA) + `]}`, `{"type":"object","oneOf":[` + obj(propA) + `,` + obj(propB) + `]}`, fine, jsonschema.SubschemasChanged, combos},
		{"a property in one of several", obj(`"p":` + of("oneOf", obj(propA)+","+i)), obj(`"p":` + of("oneOf", obj(propA+","+propB)+","+i)), jsonschema.SubschemasChanged, fine, combos},
	}
}

func notRules() []rule {
	const s, short = `{"not":{"type":"string"}}`, `{"not":{"type":"string","maxLength":3}}`
	return []rule{
		{"not excludes less", s, short, fine, jsonschema.NotExtended, nots},
		{"not comes", `{}`, s, jsonschema.TypeChanged, fine, types},
		{"not excludes another type", s, `{"not":{"type":"integer"}}`, jsonschema.NotExtended, jsonschema.NotExtended, nots},
		{"not of not", `{"not":` + s + `}`, `{"not":` + short + `}`, jsonschema.NotExtended, fine, nots},
	}
}

func referenceRules() []rule {
	list := func(value string) string {
		return `{"$ref":"#/definitions/list","definitions":{"list":` + obj(`"value":{"type":"`+value+`"},"next":{"$ref":"#/definitions/list"}`) + `}}`
	}
	mutual := func(leaf string) string {
		return `{"$ref":"#/definitions/a","definitions":{"a":` + obj(`"b":{"$ref":"#/definitions/b"}`) + `,"b":` + obj(`"a":{"$ref":"#/definitions/a"},"x":{"type":"`+leaf+`"}`) + `}}`
	}
	branching := func(leaf string) string {
		return `{"definitions":{"x":{"oneOf":[{"$ref":"#/definitions/y"},` + obj(`"x":{"$ref":"#/definitions/x"}`, `"title":"x"`) + `]},"y":` +
			obj(`"x":{"$ref":"#/definitions/x"},"v":{"type":"`+leaf+`"}`) + `},"type":"object","properties":{"a":{"$ref":"#/definitions/x"},"b":{"$ref":"#/definitions/y"}}}`
	}
	return []rule{
		{"a schema that refers to itself", list("string"), list("string"), fine, fine, circles},
		{"a schema that refers to itself, widened", list("integer"), list("number"), fine, jsonschema.TypeNarrowed, circles},
		{"a schema that refers to itself, changed", list("string"), list("number"), jsonschema.TypeChanged, jsonschema.TypeChanged, circles},
		{"two that refer to each other, widened", mutual("integer"), mutual("number"), fine, jsonschema.TypeNarrowed, circles},
		{"two that refer to each other, changed", mutual("string"), mutual("number"), jsonschema.TypeChanged, jsonschema.TypeChanged, circles},
		{"a change behind a circle of alternatives", branching("string"), branching("number"), jsonschema.TypeChanged, jsonschema.TypeChanged, circles},
		{"a circle of alternatives, same", branching("string"), branching("string"), fine, fine, circles},
		{"a reference is what it leads to", `{"$ref":"#/definitions/s","definitions":{"s":{"type":"string"}}}`, `{"type":"string"}`, fine, fine, references},
		{"what stands beside a reference, draft 7", `{"$ref":"#/definitions/s","maxLength":3,"definitions":{"s":{"type":"string"}}}`, `{"type":"string","maxLength":2}`, jsonschema.MaxLengthAdded, fine, references},
		{"what stands beside a reference, 2020-12", `{` + latest + `,"$ref":"#/$defs/s","$defs":{"s":{"type":"string"}}}`, `{` + latest + `,"$ref":"#/$defs/s","maxLength":3,"$defs":{"s":{"type":"string"}}}`, jsonschema.TypeChanged, fine, references},
		{"definitions under either name", `{"$ref":"#/$defs/s","definitions":{"s":{"type":"string"}}}`, `{"type":"string"}`, fine, fine, "Confluent, JsonSchemaDefBridgeTest"},
		{"a reference to itself says nothing", `{"$ref":"#"}`, `{}`, fine, fine, references},
		{"a schema nested once more than it repeats itself", list("string"), `{"definitions":{"list":` + obj(`"value":{"type":"string"},"next":{"$ref":"#/definitions/list"}`) + `},"type":"object","properties":{"value":{"type":"string"},"next":{"$ref":"#/definitions/list"}}}`, fine, fine, circles},
	}
}

func draftRules() []rule {
	with := func(draft, more string) string { return `{"$schema":"` + draft + `",` + more + `}` }
	const d4, d6, d7, d19, d20 = "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#",
		"https://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft/2020-12/schema#"
	const below = `"type":"number","maximum":5,"exclusiveMaximum":true`
	return []rule{
		{"exclusiveMaximum of draft 4 comes", with(d4, `"type":"number","maximum":5`), with(d4, below), jsonschema.ExclusiveMaxAdded, fine, ours},
		{"exclusiveMinimum of draft 4 comes", with(d4, `"type":"number","minimum":5`), with(d4, `"type":"number","minimum":5,"exclusiveMinimum":true`), jsonschema.ExclusiveMinAdded, fine, ours},
		{"exclusiveMaximum of draft 4 grows", with(d4, below), with(d4, `"type":"number","maximum":6,"exclusiveMaximum":true`), fine, jsonschema.MaximumDecreased, nums},
		{"const is none in draft 4", with(d4, `"const":1`), with(d4, `"const":2`), fine, fine, types},
		{"const is one in draft 6", with(d6, `"const":1`), with(d6, `"const":2`), jsonschema.EnumChanged, jsonschema.EnumChanged, types},
		{"draft 7 to 2019-09", with(d7, `"type":"string"`), with(d19, `"type":"string"`), fine, fine, types},
		{"2019-09 to 2020-12", with(d19, `"type":"string"`), with(d20, `"type":"string","maxLength":1`), jsonschema.MaxLengthAdded, fine, types},
		{
			"recursion by $recursiveRef", with(d19, `"$recursiveAnchor":true,"type":"object","properties":{"n":{"$recursiveRef":"#"},"v":{"type":"integer"}}`),
			with(d19, `"$recursiveAnchor":true,"type":"object","properties":{"n":{"$recursiveRef":"#"},"v":{"type":"number"}}`), fine, jsonschema.TypeNarrowed, types,
		},
		{
			"recursion by $dynamicRef", with(d20, `"$dynamicAnchor":"x","type":"object","properties":{"n":{"$dynamicRef":"#x"},"v":{"type":"integer"}}`),
			with(d20, `"$dynamicAnchor":"x","type":"object","properties":{"n":{"$dynamicRef":"#x"},"v":{"type":"number"}}`), fine, jsonschema.TypeNarrowed, types,
		},
		{"a dialect of one's own is read as draft 7", with("https://example.com/mine", `"type":"string"`), `{"type":"string"}`, fine, fine, types},
	}
}
