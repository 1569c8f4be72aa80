package server

import (
	"cmp"
	"slices"
	"strings"

	"github.com/waybillhq/waybill/registry/compat"
)

// Languages of schemas, as Confluent names them. A topic may hold all of them;
// only those of languages can be registered and compared.
const (
	kindAvro     = "AVRO"
	kindProtobuf = "PROTOBUF"
	kindJSON     = "JSON"
)

// language is a kind of schema. Another kind is another implementation here
// and a line in languages: ids, versions, references, the topic and the
// endpoints know nothing of what a text says.
type language interface {
	// compact is a text as it is kept: what means nothing is left out.
	compact(text string) string
	// begin starts to read a schema.
	begin() reading
}

// reading is one schema in the course of being read: what it refers to first,
// then itself. Each text knows the names of those before it.
type reading interface {
	// read reads a text that others refer to by name, "" for the schema
	// itself. What is kept already is taken more lightly than what is new: an
	// older registry may have taken what is refused today.
	read(name, text string, kept bool) (meaning, error)
}

// meaning is a schema that was understood.
type meaning interface {
	// normal writes the schema anew: texts of one meaning become one.
	normal() (string, error)
	// follows says what keeps it from following earlier, which ascends and
	// is in its own language; nothing if it may.
	follows(level compat.Level, earlier []numbered) []string
}

type numbered struct {
	number int
	meaning
}

// languages are those there are; the key is their name in the topic, where
// Avro has none.
func languages() map[string]language {
	return map[string]language{
		"":           avroLanguage{},
		kindJSON:     jsonLanguage{},
		kindProtobuf: protobufLanguage{},
	}
}

// languageOf finds a language by its name in the topic.
func languageOf(kind string) (language, error) {
	l, ok := languages()[kind]
	if !ok {
		return nil, refuse(codeInvalidSchema,
			"Schemas of type %.32s are not supported by this registry, only %s; send one of those as schemaType", kind, strings.Join(kinds(), ", "))
	}
	return l, nil
}

// kinds are the languages as requests name them, in order.
func kinds() []string {
	out := []string{}
	for kind := range languages() {
		out = append(out, cmp.Or(kind, kindAvro))
	}
	slices.Sort(out)
	return out
}

// kindIn is the name in the topic of a language as requests name it.
func kindIn(name string) string {
	if name == kindAvro {
		return ""
	}
	return name
}
