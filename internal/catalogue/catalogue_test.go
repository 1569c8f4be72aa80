package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/internal/schemas"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
	"github.com/waybillhq/waybill/test/browser"
)

// filled is a registry with an event of two versions, and a subject that is no
// event's.
func filled(t *testing.T) *registry.Client {
	t.Helper()
	e := brokertest.New(t)
	s := server.New(e.Config, server.Config{Topic: brokertest.Topic(t, "schemas"), Capabilities: e.Capabilities, Logger: e.Logger})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	web := httptest.NewServer(s)
	c, err := registry.New(web.URL, registry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		web.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-s.Ready()
	for _, more := range []string{"", `,{"name":"note","type":["null","string"],"default":null,"doc":"What <b>was</b> said."}`} {
		contract, err := event.NewContract("bank.events", "/bank", `{"type":"record","name":"bank.Opened","doc":"An account was opened.","fields":[
			{"name":"id","type":"string"},{"name":"kind","type":{"type":"enum","name":"Kind","symbols":["A","B"],"default":"A"}}`+more+`]}`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Register(t.Context(), "FULL_TRANSITIVE", contract); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.RegisterText(t.Context(), "something-value", `"string"`); err != nil {
		t.Fatal(err)
	}
	return c
}

func site(t *testing.T, get func(context.Context) (*Catalogue, error)) string {
	t.Helper()
	mux := http.NewServeMux()
	(&Server{Get: get, Version: "1", Logger: slog.New(slog.DiscardHandler)}).Register(mux)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web.URL
}

func fetch(t *testing.T, url, language string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Language", language)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestTheCatalogueIsWhatIsRegistered(t *testing.T) {
	r := filled(t)
	url := site(t, func(ctx context.Context) (*Catalogue, error) { return FromRegistry(ctx, "Bank", r, nil) })
	_, page := fetch(t, url+"/catalogue/", "en")
	for _, want := range []string{
		"bank.events", "An account was opened.", "FULL_TRANSITIVE", "A, B", "null or string", "What &lt;b&gt;was&lt;/b&gt; said.", "added</span> <code>note",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page, "something-value") {
		t.Error("the page shows what is no event")
	}
	if _, page := fetch(t, url+"/catalogue/", "pt-PT,en;q=0.5"); !strings.Contains(page, "Catálogo de eventos") || !strings.Contains(page, `lang="pt-BR"`) {
		t.Error("not in Portuguese")
	}
	_, text := fetch(t, url+"/catalogue/asyncapi.json", "")
	var doc struct {
		AsyncAPI   string `json:"asyncapi"`
		Channels   map[string]struct{ Address string }
		Operations map[string]struct{ Action string }
		Components struct {
			Messages map[string]struct {
				Payload struct {
					SchemaFormat string
					Schema       struct{ Name string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if m := doc.Components.Messages["bank.Opened"]; doc.AsyncAPI != "3.0.0" || doc.Channels["bank.events"].Address != "bank.events" ||
		doc.Operations["send_bank.events"].Action != "send" || m.Payload.Schema.Name != "bank.Opened" || !strings.Contains(m.Payload.SchemaFormat, "avro") {
		t.Errorf("%+v", doc)
	}
	references(t, []byte(text))
}

// references follows every $ref of a document.
func references(t *testing.T, text []byte) {
	t.Helper()
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	n := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				n++
				at := root
				for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
					m, _ := at.(map[string]any)
					if at, ok = m[part]; !ok {
						t.Errorf("%s leads nowhere", ref)
						return
					}
				}
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	if walk(root); n == 0 {
		t.Error("no references")
	}
}

func TestTheCatalogueOfAFolder(t *testing.T) {
	tree, err := schemas.Tree("../../logistica/contracts")
	if err != nil {
		t.Fatal(err)
	}
	c := FromTree("Logística", tree)
	doc, err := c.AsyncAPI("1", "127.0.0.1:9092")
	if err != nil {
		t.Fatal(err)
	}
	references(t, doc)
	events := 0
	for _, topic := range c.Topics {
		events += len(topic.Events)
		if topic.Name == "orders.events" && (len(topic.Events) != 4 || topic.Events[0].Key != "order_id") {
			t.Errorf("%s has %d events, the first keyed by %s", topic.Name, len(topic.Events), topic.Events[0].Key)
		}
	}
	if events != len(tree) || len(c.Topics) < 2 {
		t.Errorf("%d events in %d topics, of %d contracts", events, len(c.Topics), len(tree))
	}
}

func TestARegistryThatIsAwayIsSaid(t *testing.T) {
	away := true
	url := site(t, func(context.Context) (*Catalogue, error) {
		if away {
			return nil, errors.New("away")
		}
		return &Catalogue{Title: "Bank"}, nil
	})
	if code, text := fetch(t, url+"/catalogue/", "en"); code != http.StatusServiceUnavailable || !strings.Contains(text, "registry") {
		t.Errorf("%d %s", code, text)
	}
	away = false
	if code, text := fetch(t, url+"/catalogue/", "en"); code != http.StatusOK || !strings.Contains(text, "No events are registered yet") {
		t.Errorf("%d %s", code, text)
	}
}

func TestAnEventIsFoundByItsFieldAndOpenedByItsLink(t *testing.T) {
	tree, err := schemas.Tree("../../logistica/contracts")
	if err != nil {
		t.Fatal(err)
	}
	url := site(t, func(context.Context) (*Catalogue, error) { return FromTree("Logística", tree), nil })
	ctx := browser.New(t)
	browser.As(ctx, t, browser.Look{Width: 390, Height: 800, Locale: "pt-BR", Zone: "America/Sao_Paulo", Dark: true})
	browser.Open(ctx, t, url+"/catalogue/#logistica.orders.OrderDelivered")
	browser.Until[bool](ctx, t, `document.getElementById("logistica.orders.OrderDelivered").open`)
	browser.Until[bool](ctx, t, `document.documentElement.scrollWidth <= innerWidth`)
	browser.Do(ctx, t, chromedp.SendKeys(chromedp.CSS("#find"), "promised_at"))
	browser.Until[bool](ctx, t, `[...document.querySelectorAll("details.event")].filter((e) => !e.hidden).map((e) => e.id).join() === "logistica.orders.OrderCreated"`)
	browser.Do(ctx, t, chromedp.SendKeys(chromedp.CSS("#find"), "xyz"))
	browser.Until[bool](ctx, t, `!document.getElementById("none").hidden`)
	browser.Screenshot(ctx, t, "catalogue")
}
