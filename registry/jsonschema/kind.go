package jsonschema

// Kind is an obstacle. The names are those that Confluent's registry tells, so
// that what is known of them is found.
type Kind string

// The kinds of obstacles.
const (
	MaxLengthAdded        Kind = "MAX_LENGTH_ADDED"
	MaxLengthDecreased    Kind = "MAX_LENGTH_DECREASED"
	MinLengthAdded        Kind = "MIN_LENGTH_ADDED"
	MinLengthIncreased    Kind = "MIN_LENGTH_INCREASED"
	PatternAdded          Kind = "PATTERN_ADDED"
	PatternChanged        Kind = "PATTERN_CHANGED"
	MaximumAdded          Kind = "MAXIMUM_ADDED"
	MaximumDecreased      Kind = "MAXIMUM_DECREASED"
	MinimumAdded          Kind = "MINIMUM_ADDED"
	MinimumIncreased      Kind = "MINIMUM_INCREASED"
	ExclusiveMaxAdded     Kind = "EXCLUSIVE_MAXIMUM_ADDED"
	ExclusiveMaxDecreased Kind = "EXCLUSIVE_MAXIMUM_DECREASED"
	ExclusiveMinAdded     Kind = "EXCLUSIVE_MINIMUM_ADDED"
	ExclusiveMinIncreased Kind = "EXCLUSIVE_MINIMUM_INCREASED"
	MultipleOfAdded       Kind = "MULTIPLE_OF_ADDED"
	MultipleOfExpanded    Kind = "MULTIPLE_OF_EXPANDED"
	MultipleOfChanged     Kind = "MULTIPLE_OF_CHANGED"

	TypeChanged  Kind = "TYPE_CHANGED"
	TypeNarrowed Kind = "TYPE_NARROWED"
	EnumNarrowed Kind = "ENUM_ARRAY_NARROWED"
	EnumChanged  Kind = "ENUM_ARRAY_CHANGED"
	SchemaAdded  Kind = "SCHEMA_ADDED"

	RequiredAdded            Kind = "REQUIRED_ATTRIBUTE_ADDED"
	MaxPropertiesAdded       Kind = "MAX_PROPERTIES_ADDED"
	MaxPropertiesDecreased   Kind = "MAX_PROPERTIES_DECREASED"
	MinPropertiesAdded       Kind = "MIN_PROPERTIES_ADDED"
	MinPropertiesIncreased   Kind = "MIN_PROPERTIES_INCREASED"
	PropertiesClosed         Kind = "ADDITIONAL_PROPERTIES_REMOVED"
	PropertiesNarrowed       Kind = "ADDITIONAL_PROPERTIES_NARROWED"
	UnevaluatedPropsClosed   Kind = "UNEVALUATED_PROPERTIES_REMOVED"
	UnevaluatedPropsNarrowed Kind = "UNEVALUATED_PROPERTIES_NARROWED"
	DependencyAdded          Kind = "DEPENDENCY_ARRAY_ADDED"
	DependencyExtended       Kind = "DEPENDENCY_ARRAY_EXTENDED"
	DependencyChanged        Kind = "DEPENDENCY_ARRAY_CHANGED"
	DependencySchemaAdded    Kind = "DEPENDENCY_SCHEMA_ADDED"

	RequiredAddedToOpen        Kind = "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
	RequiredDefaultAddedToOpen Kind = "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"
	OptionalAddedToOpen        Kind = "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
	RequiredAddedToUnopen      Kind = "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"
	RemovedFromClosed          Kind = "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"
	RemovedNotCovered          Kind = "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
	AddedNotCovered            Kind = "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"

	MaxItemsAdded            Kind = "MAX_ITEMS_ADDED"
	MaxItemsDecreased        Kind = "MAX_ITEMS_DECREASED"
	MinItemsAdded            Kind = "MIN_ITEMS_ADDED"
	MinItemsIncreased        Kind = "MIN_ITEMS_INCREASED"
	MaxContainsAdded         Kind = "MAX_CONTAINS_ADDED"
	MaxContainsDecreased     Kind = "MAX_CONTAINS_DECREASED"
	MinContainsAdded         Kind = "MIN_CONTAINS_ADDED"
	MinContainsIncreased     Kind = "MIN_CONTAINS_INCREASED"
	UniqueItemsAdded         Kind = "UNIQUE_ITEMS_ADDED"
	ItemsClosed              Kind = "ADDITIONAL_ITEMS_REMOVED"
	ItemsNarrowed            Kind = "ADDITIONAL_ITEMS_NARROWED"
	UnevaluatedItemsClosed   Kind = "UNEVALUATED_ITEMS_REMOVED"
	UnevaluatedItemsNarrowed Kind = "UNEVALUATED_ITEMS_NARROWED"
	ItemAddedToOpen          Kind = "ITEM_ADDED_TO_OPEN_CONTENT_MODEL"
	ItemRemovedFromClosed    Kind = "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"
	ItemRemovedNotCovered    Kind = "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
	ItemAddedNotCovered      Kind = "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"

	CombinedChanged   Kind = "COMBINED_TYPE_CHANGED"
	SubschemasChanged Kind = "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
	ProductExtended   Kind = "PRODUCT_TYPE_EXTENDED"
	SumNarrowed       Kind = "SUM_TYPE_NARROWED"
	NotExtended       Kind = "NOT_TYPE_EXTENDED"
	TooLargeToCompare Kind = "TOO_LARGE_TO_COMPARE" // ours: Confluent goes on until a time-out
)
