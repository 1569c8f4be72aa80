package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

func TestRegisterReturnsTheIdsOfAllContracts(t *testing.T) {
	url, _ := serve(t)
	c := client(t, url)
	var contracts []*event.Contract
	for i := range 20 {
		k, err := event.NewContract("bank.events", "/bank", fmt.Sprintf(`{"type":"record","name":"E%d","namespace":"bank","fields":[]}`, i))
		if err != nil {
			t.Fatal(err)
		}
		contracts = append(contracts, k)
	}
	first, err := c.Register(t.Context(), "FULL_TRANSITIVE", contracts...)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, k := range contracts {
		seen[first[k.Fingerprint]] = true
	}
	if len(seen) != len(contracts) || seen[0] {
		t.Errorf("ids %v", first)
	}
	again, err := c.Register(t.Context(), "FULL_TRANSITIVE", contracts...)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("second time %v, %v; first %v", again, err, first)
	}
}

func TestRegisterKeepsTheLevelASubjectHas(t *testing.T) {
	url, _ := serve(t)
	c, admin := client(t, url), admin(t, url)
	k := contract(t, fieldA)
	admin.SetCompatibility(t.Context(), sr.SetCompatibility{Level: sr.CompatNone}, k.Subject())
	if _, err := c.Register(t.Context(), "FULL_TRANSITIVE", k); err != nil {
		t.Fatal(err)
	}
	if got := admin.Compatibility(t.Context(), k.Subject())[0]; got.Level != sr.CompatNone {
		t.Errorf("level became %v", got.Level)
	}
}

func admin(t *testing.T, url string) *sr.Client {
	t.Helper()
	h := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	cl, err := sr.NewClient(sr.URLs(url), sr.HTTPClient(h))
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func TestIncompatibleContractIsRefusedByNameFieldAndMend(t *testing.T) {
	url, _ := serve(t)
	c := client(t, url)
	if _, err := c.Register(t.Context(), "FULL_TRANSITIVE", contract(t, fieldA)); err != nil {
		t.Fatal(err)
	}
	ids, err := c.Register(t.Context(), "FULL_TRANSITIVE", contract(t, fieldA+","+fieldC))
	var refused *registry.IncompatibleError
	if !errors.As(err, &refused) || ids != nil || errors.Is(err, registry.ErrUnavailable) {
		t.Fatalf("%v, %v", ids, err)
	}
	if refused.Subject != "bank.events-bank.Opened" || len(refused.Reasons) != 1 {
		t.Errorf("%+v", refused)
	}
	for _, want := range []string{"bank.events-bank.Opened", `"c"`, "version 1", "default"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
}

func TestRegisterTextTellsWhatIsWrong(t *testing.T) {
	url, _ := serve(t)
	c := client(t, url)
	if _, err := c.RegisterText(t.Context(), "s", `{"type":"record"}`); !errors.Is(err, registry.ErrInvalidSchema) {
		t.Errorf("no schema: %v", err)
	}
	large := `{"type":"record","name":"T","fields":[],"doc":"` + strings.Repeat("x", 1<<20) + `"}`
	if _, err := c.RegisterText(t.Context(), "s", large); err == nil || errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("too large: %v", err)
	}
	if _, err := c.Register(t.Context(), "UPWARD", contract(t, fieldA)); err == nil {
		t.Error("unknown level accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.RegisterText(ctx, "s", `"int"`); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Whatever stands at the URL: if it cannot be asked as a registry, the event
// is not at fault.
func TestRegistryThatCannotBeAskedIsUnavailable(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	cases := map[string]http.HandlerFunc{
		"not a registry": answer(404, "<html>"+strings.Repeat("page ", 1e5)),
		"plain 404":      answer(404, `{"error_code":404,"message":"HTTP 404 Not Found"}`),
		"failing":        answer(500, `{"error_code":50001,"message":"store"}`),
		"starting":       answer(503, `{"error_code":503,"message":"starting"}`),
		"busy":           answer(429, `{}`),
		"locked":         answer(401, `{"error_code":401,"message":"Unauthorized"}`),
		"other JSON":     answer(200, `[1,2]`),
		"not JSON":       answer(200, `hello`),
		"hanging up":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for name, h := range cases {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(h)
			t.Cleanup(web.Close)
			expectUnavailable(t, web.URL)
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		expectUnavailable(t, "http://"+l.Addr().String())
	})
}

func expectUnavailable(t *testing.T, url string) {
	t.Helper()
	c := client(t, url)
	_, err := c.Register(t.Context(), "FULL", contract(t, fieldA))
	expect(t, "register", err)
	_, err = c.RegisterText(t.Context(), "s", `"int"`)
	expect(t, "register text", err)
	_, err = c.EncodeJSON(t.Context(), "s", []byte(`{}`))
	expect(t, "encode", err)
	var v any
	expect(t, "decode", registry.NewDecoder(c).Decode(t.Context(), registry.AppendHeader(nil, 1), &v, nil))
}

func expect(t *testing.T, doing string, err error) {
	t.Helper()
	if !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("%s: %v", doing, err)
	} else if len(err.Error()) > 500 {
		t.Errorf("%s: an error of %d bytes", doing, len(err.Error()))
	}
}

func TestURLIsCheckedAndItsSecretsStayOutOfSight(t *testing.T) {
	for _, bad := range []string{"", "localhost:8081", "ftp://x", "http://", "http://a b", "http://u:hunter2@[::1"} {
		_, err := registry.New(bad, registry.Config{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	var user, password string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ = r.BasicAuth()
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer web.Close()
	c := client(t, strings.Replace(web.URL, "http://", "http://u:hunter2@", 1))
	_, err := c.RegisterText(t.Context(), "s", `"int"`)
	if user != "u" || password != "hunter2" {
		t.Errorf("asked as %s:%s", user, password)
	}
	if strings.Contains(fmt.Sprint(err, c.URL()), "hunter2") {
		t.Errorf("%v tells the password", err)
	}
}

// Registries that do not know a subject's level say so in different words, and
// not all take a check against all versions.
func TestDialectsOfOtherRegistries(t *testing.T) {
	for name, code := range map[string]int{"Confluent": 40408, "older": 40401} {
		t.Run(name, func(t *testing.T) {
			levels := 0
			mux := http.NewServeMux()
			mux.HandleFunc("GET /config/{s}", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(404)
				_, _ = fmt.Fprintf(w, `{"error_code":%d,"message":"no"}`, code)
			})
			mux.HandleFunc("PUT /config/{s}", func(w http.ResponseWriter, _ *http.Request) {
				levels++
				_, _ = fmt.Fprint(w, `{"compatibility":"FULL"}`)
			})
			mux.HandleFunc("POST /subjects/{s}/versions", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(409)
				_, _ = fmt.Fprint(w, `{"error_code":409,"message":"field c lacks a default"}`)
			})
			web := httptest.NewServer(mux)
			defer web.Close()
			_, err := client(t, web.URL).Register(t.Context(), "FULL", contract(t, fieldA))
			var refused *registry.IncompatibleError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "field c lacks a default") {
				t.Errorf("%v", err)
			}
			if levels != 1 {
				t.Errorf("level set %d times", levels)
			}
		})
	}
}
