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

func serveBytes(kind string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body) // the client left: nobody to tell
	}
}

func docsOperations(doc *huma.OpenAPI) []docsOperation {
	var ops []docsOperation
	for path, item := range doc.Paths {
		for method, op := range map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post} {
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
