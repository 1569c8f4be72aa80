// Package jsonschema reads JSON Schemas and says whether one may follow the
// earlier versions of its subject, and if not, why and how to mend it.
//
// Drafts 4, 6, 7, 2019-09 and 2020-12 are read; a text that names none, or one
// of its own, is read as draft 7. References lead to the texts that are given
// with a schema, by their names, or to the drafts' own schemas: nothing is ever
// fetched from a file or an address.
//
// The rules are those of Confluent's registry under its strict policy: a schema
// is a set of values, and a reader must take every value that the writer may
// have written. Like there, format, contentEncoding, if/then/else,
// propertyNames, what contains and patternProperties ask of a value, and the
// required names that no property declares are not compared.
//
// Everything is bounded: the depth and size of a text, the pairs of places that
// a comparison looks at, and what is told of it.
package jsonschema
