package registry

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"
)

// fuzzSchemas are of each kind that a value can have, and one that holds itself.
func fuzzSchemas(f *testing.F) []*avro.Schema {
	f.Helper()
	var out []*avro.Schema
	for _, text := range []string{
		`"string"`, `["null","long",{"type":"array","items":"double"}]`,
		`{"type":"record","name":"T","fields":[{"name":"next","type":["null","T"],"default":null},{"name":"n","type":"long","default":1}]}`,
		`{"type":"record","name":"R","fields":[{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"day","type":{"type":"int","logicalType":"date"}},
			{"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},{"name":"id","type":{"type":"string","logicalType":"uuid"}},
			{"name":"kind","type":{"type":"enum","name":"E","symbols":["A","B"]}},{"name":"sum","type":{"type":"fixed","name":"F","size":4}},
			{"name":"tags","type":{"type":"map","values":["int","string"]}},{"name":"on","type":"boolean"},{"name":"real","type":"float"}]}`,
	} {
		s, err := avro.Parse(text)
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// FuzzMessage claims that a person's message is refused, or encoded to what
// reads back.
func FuzzMessage(f *testing.F) {
	all := fuzzSchemas(f)
	for i, text := range []string{
		`"x"`, `{"long":3}`, `{"next":{"next":null}}`,
		`{"at":"2026-01-31T08:00:00Z","day":"2026-01-31","price":"1.25","id":"0190163d-8694-739b-aea5-966c26f8ad90","kind":"A","sum":"\u0001\u0002\u0003\u0004","tags":{"a":{"int":1}},"on":true,"real":1e9}`,
		`[1e999]`, `{"next":{`, `null null`,
	} {
		f.Add(uint8(i), []byte(text))
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		s := all[int(which)%len(all)]
		v, err := readMessage(s, text)
		if err != nil {
			return
		}
		body, err := s.AppendEncode(nil, v)
		if err != nil {
			return
		}
		var again any
		if err := decode(1, s, body, &again); err != nil {
			t.Errorf("%s is encoded to %x, which does not read back: %v", text, body, err)
		}
	})
}

// FuzzBody claims that a value of the wire costs what its size is worth, and is
// refused or can be shown.
func FuzzBody(f *testing.F) {
	all := fuzzSchemas(f)
	for i, body := range []string{"\x02x", "\x04\x01\x00", "\x02\x02\x00\x02\x02", "\x04\xfe\xff\xff\xff\x0f", ""} {
		f.Add(uint8(i), []byte(body))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		began := time.Now()
		s := all[int(which)%len(all)]
		var v any
		if decode(1, s, body, &v) == nil {
			if _, err := s.EncodeJSON(v); err != nil {
				t.Errorf("%x is read as %v, which cannot be shown: %v", body, v, err)
			}
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// FuzzAnswer claims that whatever a registry answers is an error of a known
// kind or something that can be worked with.
func FuzzAnswer(f *testing.F) {
	for _, a := range []string{
		`["a","b"]`, `[1,2]`, `{"subject":"s","version":1,"id":1,"schema":"\"int\""}`, `{"error_code":40401,"message":"x"}`, `{"compatibilityLevel":"FULL"}`,
		`{"id":-1,"version":0,"schema":"[","references":[{"name":"x","subject":"s","version":1}]}`, `<html>`, `[`, ``, `null`,
	} {
		f.Add(uint16(200), a)
		f.Add(uint16(404), a)
	}
	f.Add(uint16(413), ``)
	f.Fuzz(func(t *testing.T, status uint16, body string) {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200 + int(status)%400)
			_, _ = w.Write([]byte(body))
		}))
		defer web.Close()
		c, err := New(web.URL, Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		known := func(doing string, err error) {
			if err == nil || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrInvalidSchema) || errors.Is(err, ErrUnknownSchema) || errors.Is(err, ErrMalformed) {
				return
			}
			var unknown *UnknownSubjectError
			var incompatible *IncompatibleError
			if !errors.As(err, &unknown) && !errors.As(err, &incompatible) && !strings.Contains(err.Error(), "versions; more than") && !strings.HasPrefix(err.Error(), "register subject") {
				t.Errorf("%s: %v", doing, err)
			}
		}
		_, err = c.Subjects(t.Context(), "")
		known("subjects", err)
		versions, err := c.Versions(t.Context(), "s")
		known("versions", err)
		for _, v := range versions {
			if v.Schema == nil {
				t.Errorf("a version without a schema, and no error")
			}
		}
		_, _, err = c.Latest(t.Context(), "s")
		known("latest", err)
		_, err = c.RegisterText(t.Context(), "s", `"int"`)
		known("register", err)
		_, err = c.Registered(t.Context(), "s", `"int"`)
		known("registered", err)
		_, err = c.EncodeJSON(t.Context(), "s", []byte(`1`))
		known("encode", err)
		var v any
		known("decode", NewDecoder(c).Decode(t.Context(), AppendHeader(nil, 1), &v, nil))
	})
}
