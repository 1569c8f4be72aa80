package api

import (
	"bytes"
	_ "embed" // the page and its style
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsPage string

//go:embed docs.css
var docsStyle []byte

type docsOperation struct {
	Method, Path, Summary, Description string
	Public                             bool
	Statuses                           []string
}

// documentRoutes serves the OpenAPI document and a page made from it, both made
// once. It is called when every operation is registered.
func (s *service) documentRoutes() error {
	documentPatience(s.huma.OpenAPI())
	page, err := template.New("docs").Parse(docsPage)
	if err != nil {
		return fmt.Errorf("api: parse documentation page: %w", err)
	}
	var out bytes.Buffer
	if err := page.Execute(&out, docsOperations(s.huma.OpenAPI())); err != nil {
		return fmt.Errorf("api: write documentation page: %w", err)
	}
	spec, err := json.Marshal(s.huma.OpenAPI())
	if err != nil {
		return fmt.Errorf("api: write OpenAPI document: %w", err)
	}
	s.mux.HandleFunc("GET /openapi.json", serveBytes("application/openapi+json", spec))
	s.mux.HandleFunc("GET /docs", serveBytes("text/html; charset=utf-8", out.Bytes()))
	s.mux.HandleFunc("GET /docs/style.css", serveBytes("text/css; charset=utf-8", docsStyle))
	return nil
}

// documentPatience says of every answer that asks for patience how long, and of
// those to requests that would write an event what they may be about.
func documentPatience(doc *huma.OpenAPI) {
	after := map[string]*huma.Param{"Retry-After": {
		Description: "Seconds after which to send the same request again.", Schema: &huma.Schema{Type: huma.TypeInteger},
	}}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op == nil {
				continue
			}
			for _, status := range []string{"429", "503"} {
				if r := op.Responses[status]; r != nil {
					r.Headers = after
				}
			}
			if r := op.Responses["429"]; r != nil && op == item.Post {
				r.Description = "Too many of the merchant's requests are at work, it sends more a second than its share, or more events wait to be published than the outbox may hold (type /docs#outbox-full). Nothing was done: send the same request again, with the same Idempotency-Key."
			}
		}
	}
}

func serveBytes(kind string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body) // the client left: nobody to tell
	}
}

func docsOperations(doc *huma.OpenAPI) []docsOperation {
	var ops []docsOperation
	for path, item := range doc.Paths {
		for method, op := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodDelete: item.Delete,
		} {
			if op != nil {
				ops = append(ops, docsOperation{method, path, op.Summary, op.Description, op.Metadata["public"] == true, statuses(op)})
			}
		}
	}
	slices.SortFunc(ops, func(a, b docsOperation) int {
		return strings.Compare(a.Path+a.Method, b.Path+b.Method)
	})
	return ops
}

func statuses(op *huma.Operation) []string {
	var list []string
	for status := range op.Responses {
		list = append(list, status)
	}
	slices.Sort(list)
	return list
}
