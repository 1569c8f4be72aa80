package server

import "net/http"

// formatter is a meaning that can be written otherwise than as its text.
type formatter interface {
	// format writes it in a format of Confluent's; one it does not know is the
	// text.
	format(name string) (string, error)
}

// formatted is a schema's text in the format that a request asks for. As with
// Confluent, a format that the schema's language does not have is the text: a
// newer client may ask for one. The caller holds the state's lock.
func (st *state) formatted(r *http.Request, c *content) (string, error) {
	name := r.URL.Query().Get("format")
	if name == "" || c.kind == kindIn(kindAvro) {
		return c.text, nil
	}
	m, err := st.compile(c)
	if err != nil {
		return "", refuse(codeInvalidSchema, "The schema cannot be written as %.32s, since it is not valid (%s); leave format out", name, err)
	}
	if f, ok := m.(formatter); ok {
		return f.format(name)
	}
	return c.text, nil
}
