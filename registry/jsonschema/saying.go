package jsonschema

import "slices"

// saying is an obstacle in words, and how to mend it where the new schema is
// to read old data, and where old programs are to read new data.
type saying struct {
	kinds                    []Kind
	fault, backward, forward string
}

func sayingOf(k Kind) saying {
	for _, s := range slices.Concat(ofKeywords(), ofProperties(), ofItems(), ofCombinations()) {
		if slices.Contains(s.kinds, k) {
			return s
		}
	}
	return saying{nil, "READER takes less than WRITER allows", "keep this part as it was", "keep this part as it was"}
}

func ofKeywords() []saying {
	return []saying{
		{
			[]Kind{MaxLengthAdded, MinLengthAdded, PatternAdded, MaximumAdded, MinimumAdded, ExclusiveMaxAdded, ExclusiveMinAdded, MultipleOfAdded, MaxPropertiesAdded, MinPropertiesAdded, MaxItemsAdded, MinItemsAdded, MaxContainsAdded, MinContainsAdded, UniqueItemsAdded},
			"READER asks for KEY, and WRITER does not",
			"leave KEY out",
			"keep KEY, as EARLIER has it",
		},
		{
			[]Kind{MaxLengthDecreased, MinLengthIncreased, MaximumDecreased, MinimumIncreased, ExclusiveMaxDecreased, ExclusiveMinIncreased, MultipleOfExpanded, MaxPropertiesDecreased, MinPropertiesIncreased, MaxItemsDecreased, MinItemsIncreased, MaxContainsDecreased, MinContainsIncreased},
			"KEY is stricter in READER than in WRITER",
			"keep KEY, or make it wider",
			"keep KEY, or make it stricter",
		},
		{
			[]Kind{PatternChanged, MultipleOfChanged},
			"KEY of READER is another than that of WRITER",
			"keep KEY, or leave it out",
			"keep KEY as EARLIER has it",
		},
		{
			[]Kind{EnumNarrowed, EnumChanged},
			"READER does not take all values that WRITER has",
			"keep the values, and add the new ones to them",
			"keep to the values that EARLIER has",
		},
		{
			[]Kind{TypeChanged},
			"it is of another type in READER than in WRITER",
			"keep the type, or name it beside the new one in a list of types or an anyOf",
			"keep the type, and use another property for the new one",
		},
		{
			[]Kind{TypeNarrowed},
			"READER takes integers only, and WRITER has any number",
			"keep the type number",
			"keep the type integer",
		},
		{
			[]Kind{TooLargeToCompare},
			"the schemas are too large to compare",
			"divide them into schemas of their own, or shorten lists of anyOf and oneOf",
			"divide them into schemas of their own, or shorten lists of anyOf and oneOf",
		},
	}
}

func ofProperties() []saying {
	return []saying{
		{
			[]Kind{RequiredAdded, RequiredAddedToUnopen},
			"READER requires the property without a default, and WRITER may leave it out",
			"give the property a default, or do not require it",
			"keep the property, and keep it required",
		},
		{
			[]Kind{OptionalAddedToOpen, RequiredAddedToOpen, RequiredDefaultAddedToOpen},
			"READER says what KEY is, and WRITER, which is open to any property, may have anything there",
			"leave the property out, or let it be anything ({}); properties can be added freely where additionalProperties is false from the first version on",
			"keep the property, or close the new schema with additionalProperties: false",
		},
		{
			[]Kind{RemovedFromClosed},
			"READER is closed to other properties, and WRITER has this one",
			"keep the property, or leave additionalProperties: false out",
			"leave the property out, since EARLIER takes no others",
		},
		{
			[]Kind{RemovedNotCovered},
			"what READER lets other properties be does not take this one of WRITER",
			"keep the property",
			"let the property be what EARLIER lets other properties be",
		},
		{
			[]Kind{AddedNotCovered},
			"READER takes less here than WRITER lets other properties be",
			"let the property be all that EARLIER lets other properties be",
			"keep the property",
		},
		{
			[]Kind{PropertiesClosed, UnevaluatedPropsClosed},
			"READER is closed to other properties, and WRITER is not",
			"leave KEY as it was",
			"close the new schema as EARLIER is, with KEY: false",
		},
		{
			[]Kind{PropertiesNarrowed, UnevaluatedPropsNarrowed},
			"READER restricts other properties, and WRITER does not",
			"leave KEY as it was",
			"restrict KEY as EARLIER does",
		},
		{
			[]Kind{DependencyAdded, DependencyExtended, DependencyChanged, DependencySchemaAdded},
			"with KEY, READER asks for more than WRITER does",
			"leave the dependency out",
			"keep the dependency of EARLIER",
		},
	}
}

func ofItems() []saying {
	return []saying{
		{
			[]Kind{SchemaAdded},
			"READER says what these are, and WRITER does not",
			"leave KEY out, or let it be anything ({})",
			"keep KEY, as EARLIER has it",
		},
		{
			[]Kind{ItemAddedToOpen},
			"READER says what this item is, and WRITER, which is open to any further item, may have anything there",
			"leave the item out, or let it be anything ({})",
			"keep the item, or close the list to further ones",
		},
		{
			[]Kind{ItemRemovedFromClosed},
			"READER is closed to further items, and WRITER has this one",
			"keep the item",
			"leave the item out, since EARLIER takes no more",
		},
		{
			[]Kind{ItemRemovedNotCovered},
			"what READER lets further items be does not take this one of WRITER",
			"keep the item",
			"let the item be what EARLIER lets further ones be",
		},
		{
			[]Kind{ItemAddedNotCovered},
			"READER takes less here than WRITER lets further items be",
			"let the item be all that EARLIER lets further ones be",
			"keep the item",
		},
		{
			[]Kind{ItemsClosed, UnevaluatedItemsClosed},
			"READER is closed to further items, and WRITER is not",
			"leave the list open",
			"close the list as EARLIER does",
		},
		{
			[]Kind{ItemsNarrowed, UnevaluatedItemsNarrowed},
			"READER restricts further items, and WRITER does not",
			"leave KEY as it was",
			"restrict further items as EARLIER does",
		},
	}
}

func ofCombinations() []saying {
	return []saying{
		{
			[]Kind{CombinedChanged},
			"READER combines its parts by another keyword than WRITER",
			"keep the keyword, or change it to anyOf",
			"keep the keyword of EARLIER",
		},
		{
			[]Kind{SubschemasChanged},
			"parts of WRITER have no part of READER that takes them",
			"keep the parts as they were, and add new ones beside them",
			"keep the parts of EARLIER",
		},
		{
			[]Kind{ProductExtended},
			"READER has more conditions than WRITER",
			"leave the new conditions out",
			"keep the conditions of EARLIER",
		},
		{
			[]Kind{SumNarrowed},
			"READER has fewer alternatives than WRITER",
			"keep the alternatives",
			"keep to the alternatives of EARLIER",
		},
		{
			[]Kind{NotExtended},
			"READER excludes more than WRITER",
			"leave not as it was",
			"exclude what EARLIER excludes",
		},
	}
}
