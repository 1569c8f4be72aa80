package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/waybillhq/waybill/internal/schemas"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/test/browser"
)

// stub is a registry with one version of each schema, by subject.
func stub(t *testing.T, texts map[string]string) *registry.Client {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }
	mux.HandleFunc("GET /subjects", func(w http.ResponseWriter, _ *http.Request) {
		names := []string{}
		for name := range texts {
			names = append(names, name)
		}
		answer(w, names)
	})
	mux.HandleFunc("GET /subjects/{s}/versions", func(w http.ResponseWriter, _ *http.Request) { answer(w, []int{1}) })
	mux.HandleFunc("GET /subjects/{s}/versions/1", func(w http.ResponseWriter, r *http.Request) {
		kind, text, _ := strings.Cut(texts[r.PathValue("s")], " ")
		answer(w, map[string]any{"subject": r.PathValue("s"), "version": 1, "id": 1, "schemaType": kind, "schema": text})
	})
	mux.HandleFunc("GET /config/{s}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"compatibilityLevel": "FULL"})
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	c, err := registry.New(web.URL, registry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// One subject that is no Avro must not cost all others their page.
func TestSubjectsThatAreNotUnderstoodAreLeftOut(t *testing.T) {
	c, err := FromRegistry(t.Context(), "Bank", stub(t, map[string]string{
		"t-A":       `AVRO {"type":"record","name":"A","fields":[]}`,
		"t-B":       `JSON {"title":"B"}`,
		"t-C":       `PROTOBUF message C {}`,
		"t-D":       `AVRO {"type":"record"}`,
		"t-":        `AVRO ["null","int"]`,
		"t-value":   `AVRO "string"`,
		"-A":        `AVRO {"type":"record","name":"A","fields":[]}`,
		"a/b t-n.E": `AVRO {"type":"record","name":"n.E","fields":[]}`,
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(c); got != "a/b t:n.E t:A" {
		t.Errorf("%s", got)
	}
}

func names(c *Catalogue) string {
	var out []string
	for _, topic := range c.Topics {
		for _, e := range topic.Events {
			out = append(out, topic.Name+":"+e.Type)
		}
	}
	return strings.Join(out, " ")
}

// A type that two topics carry is two contracts, and names that AsyncAPI would
// write alike are two names.
func TestNoEventStandsForAnother(t *testing.T) {
	record := func(field string) string {
		return fmt.Sprintf(`AVRO {"type":"record","name":"A","fields":[{"name":%q,"type":"int","default":0}]}`, field)
	}
	c, err := FromRegistry(t.Context(), "Bank", stub(t, map[string]string{"t 1-A": record("one"), "t/1-A": record("two"), "t_1-A": record("three")}), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.AsyncAPI("1", "")
	if err != nil {
		t.Fatal(err)
	}
	references(t, text)
	var doc struct {
		Channels   map[string]struct{ Address string }
		Components struct{ Messages map[string]json.RawMessage }
	}
	if err := json.Unmarshal(text, &doc); err != nil || len(doc.Channels) != 3 || len(doc.Components.Messages) != 3 {
		t.Errorf("%v %s", err, text)
	}
	for _, field := range []string{"one", "two", "three"} {
		if !strings.Contains(string(text), `"`+field+`"`) {
			t.Errorf("%s is missing", field)
		}
	}
	var page strings.Builder
	if err := c.Page(&page, "en"); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"t 1-A", "t/1-A", "t_1-A"} {
		if strings.Count(page.String(), `id="`+subject+`"`) != 1 {
			t.Errorf("no link leads to %s alone", subject)
		}
	}
}

// What schemas say of themselves is text, whatever it looks like.
func TestSchemasCannotBringScripts(t *testing.T) {
	const evil = `</pre></details></script><script>alert(1)</script><img src=x onerror=alert(1)>' onload='x\" onfocus=\"alert(1)`
	tree := []schemas.Contract{contract(t, evil)}
	var page strings.Builder
	if err := FromTree(strings.ReplaceAll(evil, `\`, ``), tree).Page(&page, "en"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "1 event<") {
		t.Error("one event is told as many")
	}
	for _, bad := range []string{"<script>alert", "<img", "\" onfocus", "' onload"} {
		if strings.Contains(page.String(), bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	url := site(t, func(context.Context) (*Catalogue, error) { return FromTree(evil, tree), nil })
	ctx := browser.New(t)
	browser.Open(ctx, t, url+"/catalogue/#%")
	browser.Do(ctx, t, chromedp.SendKeys(chromedp.CSS("#find"), "xyz")) // the page's own script has survived the link
	browser.Until[bool](ctx, t, `!document.getElementById("none").hidden && document.images.length === 0 && document.scripts.length === 1`)
}

func contract(t *testing.T, doc string) schemas.Contract {
	t.Helper()
	dir := t.TempDir()
	text := `{"type":"record","name":"A","doc":"` + doc + `","topic":"t","source":"/` + doc + `","key":"id",
		"fields":[{"name":"id","type":"string","doc":"` + doc + `","default":"` + doc + `"}]}`
	if err := os.WriteFile(filepath.Join(dir, "a.avsc"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := schemas.Tree(dir)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// Whoever asks while the registry takes its time waits for the one answer, and
// may leave.
func TestManyWhoAskAtOnceAskTheRegistryOnce(t *testing.T) {
	var asked atomic.Int64
	begun, answer := make(chan struct{}), make(chan struct{})
	s := &Server{Version: "1", Logger: slog.New(slog.DiscardHandler), Get: func(ctx context.Context) (*Catalogue, error) {
		if asked.Add(1) == 1 {
			close(begun)
		}
		select {
		case <-answer:
			return &Catalogue{Title: "Bank"}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	first, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.get(first); err == nil {
			t.Error("the first left, and had an answer")
		}
	})
	<-begun
	for range 20 {
		wg.Go(func() {
			if c, err := s.get(t.Context()); err != nil || c.Title != "Bank" {
				t.Errorf("%v %v", c, err)
			}
		})
	}
	leave()
	close(answer)
	wg.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
