package registry_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/registry"
)

// A registry that answers is there, whatever it says to the schema: who took it
// for one that is away would ask for ever.
func TestASchemaThatIsNotTakenIsNotARegistryThatIsAway(t *testing.T) {
	url, _ := serve(t)
	c := client(t, url)
	if _, err := c.RegisterText(t.Context(), "s", `"int"`); err != nil {
		t.Fatal(err)
	}
	large := `{"type":"record","name":"T","fields":[],"doc":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, ask := range map[string]func(text string) error{
		"look up":  func(text string) error { _, err := c.Registered(t.Context(), "s", text); return err },
		"register": func(text string) error { _, err := c.RegisterText(t.Context(), "s", text); return err },
	} {
		if err := ask(large); errors.Is(err, registry.ErrUnavailable) || !errors.Is(err, registry.ErrInvalidSchema) || !strings.Contains(err.Error(), "1048") {
			t.Errorf("%s of one too large: %.300v", name, err)
		}
		if err := ask(`{"type":"record"}`); errors.Is(err, registry.ErrUnavailable) || !errors.Is(err, registry.ErrInvalidSchema) {
			t.Errorf("%s of none: %v", name, err)
		}
	}
}

func TestARegistryThatWantsCredentialsSaysSo(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(web.Close)
		_, err := client(t, web.URL).Subjects(t.Context(), "")
		if !errors.Is(err, registry.ErrUnavailable) || !errors.Is(err, registry.ErrDenied) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// A subject in another language has a number, an id and a text all the same.
func TestTheLatestVersionInAnotherLanguageIsToldAsFarAsItIsUnderstood(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/versions") {
			_, _ = w.Write([]byte(`[1,4]`))
			return
		}
		_, _ = w.Write([]byte(`{"subject":"s","version":4,"id":9,"schemaType":"JSON","schema":"{}"}`))
	}))
	t.Cleanup(web.Close)
	numbers, latest, err := client(t, web.URL).Latest(t.Context(), "s")
	if !errors.Is(err, registry.ErrInvalidSchema) || len(numbers) != 2 || latest.Number != 4 || latest.ID != 9 || latest.Text != "{}" {
		t.Errorf("%v %+v %v", numbers, latest, err)
	}
}

// Each schema refers to the one before it twice.
func TestReferencesThatMeetAgainAreFetchedOnce(t *testing.T) {
	url, asked := serve(t)
	c := client(t, url)
	if _, err := c.RegisterText(t.Context(), "d0", `{"type":"record","name":"D0","fields":[]}`); err != nil {
		t.Fatal(err)
	}
	const last = 16
	for i := 1; i <= last; i++ {
		body := fmt.Sprintf(`{"schema":"{\"type\":\"record\",\"name\":\"D%d\",\"fields\":[{\"name\":\"a\",\"type\":\"D%d\"}]}",`+
			`"references":[{"name":"D%d","subject":"d%d","version":1},{"name":"x","subject":"d%d","version":1}]}`, i, i-1, i-1, i-1, i-1)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("%s/subjects/d%d/versions", url, i), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d: %v %v", i, resp, err)
		}
		_ = resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	before := asked.Load()
	if _, _, err := c.Latest(t.Context(), fmt.Sprintf("d%d", last)); err != nil {
		t.Error(err)
	}
	if n := asked.Load() - before; n != last+2 { // the list, the latest, each of the others
		t.Errorf("%d requests", n)
	}
}
