package catalogue

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("catalogue").Parse(pageText))

// Languages the page speaks; the first is for all others.
var Languages = []string{"en", "pt-BR"}

// Page writes the catalogue as one HTML page that needs nothing else.
func (c *Catalogue) Page(w io.Writer, language string) error {
	var out bytes.Buffer
	if err := page.Execute(&out, struct {
		*Catalogue
		Say  words
		Lang string
	}{c, wordsOf(language), language}); err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	_, err := out.WriteTo(w)
	return err
}

// Language is the one of Languages that an Accept-Language header asks for
// first.
func Language(accept string) string {
	for _, part := range strings.Split(accept, ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		base, _, _ := strings.Cut(strings.ToLower(tag), "-")
		switch base {
		case "pt":
			return "pt-BR"
		case "en":
			return "en"
		}
	}
	return Languages[0]
}

// words are the page's own; what events say of themselves is in their
// contracts' language.
type words struct {
	Catalogue, Topics, Search, None, Nothing, Key, Subject, Source, Level, Fields, Field, Type, Default, Meaning, Required string
	Versions, Version, First, Unnoticed, Added, Removed, Changed, Schema, AsyncAPI, Event, Events                          string
}

func wordsOf(language string) words {
	if language == "pt-BR" {
		return words{
			Catalogue: "Catálogo de eventos", Topics: "Tópicos", Search: "Procurar evento ou campo", None: "Nenhum evento com esse texto.",
			Nothing: "Ainda não há eventos registrados.", Key: "Chave", Subject: "Assunto no registro", Source: "Quem envia", Level: "Compatibilidade",
			Fields: "Campos", Field: "Campo", Type: "Tipo", Default: "Padrão", Meaning: "Significado", Required: "obrigatório",
			Versions: "Versões", Version: "Versão", First: "primeira", Unnoticed: "nada que quem lê perceba", Added: "novo", Removed: "retirado", Changed: "mudou",
			Schema: "Esquema Avro", AsyncAPI: "Documento AsyncAPI", Event: "evento", Events: "eventos",
		}
	}
	return words{
		Catalogue: "Catalogue of events", Topics: "Topics", Search: "Find an event or a field", None: "No event has that text.",
		Nothing: "No events are registered yet.", Key: "Key", Subject: "Subject in the registry", Source: "Sent by", Level: "Compatibility",
		Fields: "Fields", Field: "Field", Type: "Type", Default: "Default", Meaning: "Meaning", Required: "required",
		Versions: "Versions", Version: "Version", First: "the first", Unnoticed: "nothing that readers notice", Added: "added", Removed: "removed", Changed: "changed",
		Schema: "Avro schema", AsyncAPI: "AsyncAPI document", Event: "event", Events: "events",
	}
}

// Word is a kind of change in the page's language.
func (w words) Word(kind string) string {
	return map[string]string{"added": w.Added, "removed": w.Removed, "changed": w.Changed}[kind]
}

// Text is the schema, indented.
func (e Event) Text() string {
	var out bytes.Buffer
	if json.Indent(&out, e.Schema, "", "  ") != nil {
		return string(e.Schema)
	}
	return out.String()
}
