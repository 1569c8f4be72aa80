package gen

import (
	"strings"
	"unicode"
)

// initialisms are written in capitals, as Go's style has it.
var initialisms = map[string]string{
	"api": "API", "cep": "CEP", "cnpj": "CNPJ", "cpf": "CPF", "eta": "ETA",
	"html": "HTML", "http": "HTTP", "https": "HTTPS", "id": "ID", "ids": "IDs",
	"ip": "IP", "json": "JSON", "sql": "SQL", "tls": "TLS", "uri": "URI",
	"url": "URL", "urls": "URLs", "utc": "UTC", "uuid": "UUID",
}

// goName is the exported Go name of a field or symbol, written in snake case,
// camel case or capitals.
func goName(name string) string {
	var b strings.Builder
	for _, w := range words(name) {
		w = strings.ToLower(w)
		if up, ok := initialisms[w]; ok {
			b.WriteString(up)
		} else {
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return b.String()
}

// words splits at underscores and where a small letter meets a capital.
func words(name string) []string {
	var b strings.Builder
	var last rune
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte('_')
		}
		b.WriteRune(r)
		last = r
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return r == '_' })
}

// unexported lowers the first word of a Go name: HTTPCall becomes httpCall.
func unexported(name string) string {
	r := []rune(name)
	for i := range r {
		if i > 0 && i+1 < len(r) && unicode.IsLower(r[i+1]) {
			break
		}
		if !unicode.IsUpper(r[i]) {
			break
		}
		r[i] = unicode.ToLower(r[i])
	}
	return string(r)
}

// sentence begins a doc with the name it belongs to, as Go's docs do:
// sentence("OrderItem", "is", "One line.") is "OrderItem is one line."
func sentence(name, verb, doc string) string {
	doc = strings.Join(strings.Fields(doc), " ")
	switch {
	case doc == "":
		return ""
	case strings.HasPrefix(doc, name+" "):
		return doc
	}
	return name + " " + verb + " " + lowerFirst(doc)
}

// lowerFirst leaves words in capitals alone.
func lowerFirst(s string) string {
	r := []rune(s)
	if len(r) > 1 && unicode.IsUpper(r[1]) {
		return s
	}
	r[0] = unicode.ToLower(r[0])
	return string(r)
}

// comment wraps text into // lines.
func comment(indent, text string) string {
	const width = 77
	var b strings.Builder
	line := indent + "//"
	for _, w := range strings.Fields(text) {
		if len(line)+1+len(w) > width && line != indent+"//" {
			b.WriteString(line + "\n")
			line = indent + "//"
		}
		line += " " + w
	}
	if line != indent+"//" {
		b.WriteString(line + "\n")
	}
	return b.String()
}
