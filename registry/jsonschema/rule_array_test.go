package jsonschema_test

import "github.com/waybillhq/waybill/registry/jsonschema"

const latest = `"$schema":"https://json-schema.org/draft/2020-12/schema"`

func arrayRules() []rule {
	arr := func(more string) string { return `{"type":"array","items":{"type":"integer"}` + more + `}` }
	contains := func(more string) string {
		return `{` + latest + `,"type":"array","contains":{"type":"integer"}` + more + `}`
	}
	none := `{` + latest + `,"type":"array"}`
	left := func(s string) string { return `{` + latest + `,"type":"array","unevaluatedItems":` + s + `}` }
	return []rule{
		{"items widened", arr(``), `{"type":"array","items":{"type":"number"}}`, fine, jsonschema.TypeNarrowed, arrays},
		{"items come", `{"type":"array"}`, arr(``), jsonschema.SchemaAdded, fine, arrays},
		{"items that may be anything come", `{"type":"array"}`, `{"type":"array","items":{}}`, fine, fine, ours},
		{"maxItems comes", arr(``), arr(`,"maxItems":3`), jsonschema.MaxItemsAdded, fine, arrays},
		{"maxItems grows", arr(`,"maxItems":3`), arr(`,"maxItems":4`), fine, jsonschema.MaxItemsDecreased, arrays},
		{"minItems comes", arr(``), arr(`,"minItems":3`), jsonschema.MinItemsAdded, fine, arrays},
		{"minItems grows", arr(`,"minItems":3`), arr(`,"minItems":4`), jsonschema.MinItemsIncreased, fine, arrays},
		{"uniqueItems comes", arr(``), arr(`,"uniqueItems":true`), jsonschema.UniqueItemsAdded, fine, arrays},
		{"contains comes, draft 7", arr(``), arr(`,"contains":{"const":1}`), fine, fine, arrays},
		{"contains comes, 2020-12", none, contains(``), jsonschema.MinContainsAdded, fine, arrays},
		{"minContains grows", contains(``), contains(`,"minContains":2`), jsonschema.MinContainsIncreased, fine, arrays},
		{"maxContains comes", contains(``), contains(`,"maxContains":2`), jsonschema.MaxContainsAdded, fine, arrays},
		{"maxContains grows", contains(`,"maxContains":2`), contains(`,"maxContains":3`), fine, jsonschema.MaxContainsDecreased, arrays},
		{"unevaluated items closed", none, left(`false`), jsonschema.UnevaluatedItemsClosed, fine, arrays},
		{"unevaluated items restricted", none, left(`{"type":"string"}`), jsonschema.UnevaluatedItemsNarrowed, fine, arrays},
		{"unevaluated items widened", left(`{"type":"integer"}`), left(`{"type":"number"}`), fine, jsonschema.TypeNarrowed, arrays},
	}
}

func tupleRules() []rule {
	const s, i = `{"type":"string"}`, `{"type":"integer"}`
	tuple := func(items, more string) string { return `{"type":"array","items":[` + items + `]` + more + `}` }
	later := func(items, more string) string {
		return `{` + latest + `,"type":"array","prefixItems":[` + items + `]` + more + `}`
	}
	const shut, ints = `,"additionalItems":false`, `,"additionalItems":{"type":"integer"}`
	return []rule{
		{"item of a tuple of another type", tuple(s, ``), tuple(i, ``), jsonschema.TypeChanged, jsonschema.TypeChanged, arrays},
		{"open tuple, an item comes", tuple(s, ``), tuple(s+`,`+i, ``), jsonschema.ItemAddedToOpen, fine, arrays},
		{"open tuple, an item that may be anything comes", tuple(s, ``), tuple(s+`,{}`, ``), fine, fine, arrays},
		{"closed tuple, an item comes", tuple(s, shut), tuple(s+`,`+i, shut), fine, jsonschema.ItemRemovedFromClosed, arrays},
		{"closed tuple, an item that takes nothing goes", tuple(s+`,false`, shut), tuple(s, shut), fine, fine, arrays},
		{"partly open tuple, a covered item comes", tuple(s, ints), tuple(s+`,`+i, ints), fine, fine, arrays},
		{"partly open tuple, an item that is not covered comes", tuple(s, ints), tuple(s+`,`+s, ints), jsonschema.ItemAddedNotCovered, jsonschema.ItemRemovedNotCovered, arrays},
		{"tuple closed", tuple(s, ``), tuple(s, shut), jsonschema.ItemsClosed, fine, arrays},
		{"further items restricted", tuple(s, ``), tuple(s, ints), jsonschema.ItemsNarrowed, fine, arrays},
		{"further items of another type", tuple(s, ints), tuple(s, `,"additionalItems":{"type":"string"}`), jsonschema.TypeChanged, jsonschema.TypeChanged, arrays},
		{"prefixItems, an item comes to an open list", later(s, ``), later(s+`,`+i, ``), jsonschema.ItemAddedToOpen, fine, arrays},
		{"prefixItems, an item comes to a closed list", later(s, `,"items":false`), later(s+`,`+i, `,"items":false`), fine, jsonschema.ItemRemovedFromClosed, arrays},
		{"prefixItems closed", later(s, ``), later(s, `,"items":false`), jsonschema.ItemsClosed, fine, arrays},
		{"prefixItems, further items restricted", later(s, ``), later(s, `,"items":{"type":"integer"}`), jsonschema.ItemsNarrowed, fine, arrays},
		{"a tuple of draft 7 and one of 2020-12", tuple(s, shut), later(s, `,"items":false`), fine, fine, arrays},
		{"additionalItems without a tuple means nothing", `{"type":"array"}`, `{"type":"array","additionalItems":false}`, fine, fine, ours},
	}
}
