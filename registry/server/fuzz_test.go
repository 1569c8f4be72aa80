package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/registry/compat"
)

// fuzzPatience is far more than any text of a fuzzer's size may cost.
const fuzzPatience = 20 * time.Second

func quick(t *testing.T, began time.Time) {
	t.Helper()
	if took := time.Since(began); took > fuzzPatience {
		t.Fatalf("it took %s", took)
	}
}

func FuzzSchemaText(f *testing.F) {
	for _, text := range []string{
		`"int"`, `["null","string"]`, `{"type":"record","name":"T","fields":[{"name":"n","type":["null","T"],"default":null}]}`,
		`{"type":"enum","name":"a.E","symbols":["A"],"default":"A","aliases":["b"]}`, `{"type":"fixed","name":"F","size":4}`,
		`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`, `{"type":"map","values":{"type":"array","items":"T"}}`,
		`{"type":"record","name":"T","fields":[{"name":"n","type":"int","default":"x"}]}`, `{`, ``,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer quick(t, time.Now())
		text = avroLanguage{}.compact(text)
		for _, kept := range []bool{false, true} {
			m, err := avroLanguage{}.begin().read("", text, kept)
			if err != nil {
				continue
			}
			if again := (avroLanguage{}).compact(text); again != text {
				t.Errorf("compact twice: %s, %s", text, again)
			}
			_ = m.follows(compat.FullTransitive, []numbered{{1, m}})
			normal, err := m.normal()
			if err != nil || kept {
				continue
			}
			n, err := avroLanguage{}.begin().read("", normal, false)
			if err != nil {
				t.Fatalf("normal form %s of %s: %v", normal, text, err)
			}
			if twice, err := n.normal(); err != nil || twice != normal {
				t.Errorf("normal form of %s: %s, its own: %s, %v", text, normal, twice, err)
			}
		}
	})
}

// offline is a server that has read a topic and cannot write to it.
func offline() *Server {
	s := New(broker.Config{}, Config{Logger: slog.New(slog.DiscardHandler)})
	for i, kv := range [][2]string{
		{string(schemaKey("one", 1)), `{"subject":"one","version":1,"id":1,"schema":"{\"type\":\"record\",\"name\":\"T\",\"fields\":[]}","deleted":false}`},
		{string(schemaKey("one", 2)), `{"subject":"one","version":2,"id":2,"schema":"\"int\"","deleted":true}`},
		{string(schemaKey("bad", 1)), `{"subject":"bad","version":1,"id":3,"schema":"[","deleted":false}`},
	} {
		s.state.apply(&kgo.Record{Key: []byte(kv[0]), Value: []byte(kv[1]), Offset: int64(i)})
	}
	close(s.ready)
	close(s.over)
	return s
}

func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{http.MethodPost, "/subjects/one", `{"schema":"\"int\""}`},
		{http.MethodPost, "/subjects/p/versions?normalize=true", `{"schema":"message M { optional int32 a = 1; }","schemaType":"PROTOBUF","references":[{"name":"a","subject":"one","version":1}]}`},
		{http.MethodPost, "/subjects/p?format=serialized", `{"schema":"CgdkZWZhdWx0YgZwcm90bzM=","schemaType":"PROTOBUF"}`},
		{http.MethodPost, "/subjects/one/versions?normalize=true", `{"schema":"\"int\"","id":4,"version":1,"schemaType":"AVRO","metadata":{},"ruleSet":null}`},
		{http.MethodPost, "/compatibility/subjects/one/versions/latest?verbose=true", `{"schema":"{\"type\":\"record\",\"name\":\"T\",\"fields\":[]}","references":[{"name":"x","subject":"one","version":1}]}`},
		{http.MethodPost, "/compatibility/subjects/bad/versions", `{"schema":"\"int\"","references":[{}]}`},
		{http.MethodPut, "/config/one", `{"compatibility":"FULL","normalize":true}`},
		{http.MethodPut, "/mode?force=true", `{"mode":"IMPORT"}`},
		{http.MethodGet, "/schemas?offset=1&limit=-1&latestOnly=true&subjectPrefix=:*:", ``},
		{http.MethodGet, "/schemas/guids/095d71cf-1255-6b9d-5e33-0ad575b3df5d/ids", ``},
		{http.MethodDelete, "/subjects/one/versions/2?permanent=true", ``},
		{http.MethodGet, "/subjects/%3a.%3aone/versions?deletedAsNegative=1", ``},
		{http.MethodDelete, "/contexts/.x", `[[`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		defer quick(t, time.Now())
		req, err := http.NewRequestWithContext(t.Context(), method, "http://registry.example", strings.NewReader(body))
		if err != nil {
			t.Skip("no request")
		}
		if req.URL, err = req.URL.Parse(path); err != nil || !strings.HasPrefix(req.URL.Path, "/") {
			t.Skip("no path")
		}
		w := httptest.NewRecorder()
		offline().ServeHTTP(w, req)
		if w.Code < 300 {
			return
		}
		var answer failure
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Message == "" || answer.status() != w.Code {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		if w.Code >= 500 && answer.Code != codeStore {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	})
}
