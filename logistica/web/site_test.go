package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func get(t *testing.T, method, target string, header ...string) *http.Response {
	t.Helper()
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, r *http.Response) []byte {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoutesAnswerWithTypeAndStatus(t *testing.T) {
	for _, c := range []struct {
		method, target string
		status         int
		mime           string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8"},
		{"HEAD", "/", 200, "text/html; charset=utf-8"},
		{"GET", "/track/abc", 200, "text/html; charset=utf-8"},
		{"GET", "/track/%3Cscript%3E", 200, "text/html; charset=utf-8"},
		{"GET", "/courier", 200, "text/html; charset=utf-8"},
		{"GET", "/faults", 200, "text/html; charset=utf-8"},
		{"GET", "/webhooks", 200, "text/html; charset=utf-8"},
		{"GET", "/webhooks/", 404, ""},
		{"GET", "/courier/", 404, ""},
		{"GET", "/assets/js/desk.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/assets/push/sse.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/assets/css/base.css", 200, "text/css; charset=utf-8"},
		{"GET", "/assets/icon.svg", 200, "image/svg+xml"},
		{"GET", "/favicon.ico", 200, "image/svg+xml"},
		{"GET", "/assets/vendor/LICENSE.preact", 200, "text/plain; charset=utf-8"},
		{"GET", "/assets/0123456789abcdef/js/desk.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/assets/desk.html", 404, ""},
		{"GET", "/assets/", 404, ""},
		{"GET", "/assets/js", 404, ""},
		{"GET", "/assets/js/../web.go", 307, ""},
		{"GET", "/assets/js/%2e%2e/%2e%2e/web.go", 404, ""},
		{"GET", "/other", 404, ""},
		{"GET", "/track/", 404, ""},
		{"POST", "/", 405, ""},
	} {
		r := get(t, c.method, c.target)
		if r.StatusCode != c.status || (c.mime != "" && r.Header.Get("Content-Type") != c.mime) {
			t.Errorf("%s %s: %d %q", c.method, c.target, r.StatusCode, r.Header.Get("Content-Type"))
		}
	}
}

func TestPageIsRevalidatedAndItsBuildIsKeptForGood(t *testing.T) {
	page := get(t, "GET", "/")
	if c := page.Header.Get("Cache-Control"); c != "no-cache" {
		t.Errorf("page: Cache-Control %q", c)
	}
	script := regexp.MustCompile(`/assets/[0-9a-f]{16}/js/desk\.js`).FindString(string(bodyOf(t, page)))
	if script == "" {
		t.Fatal("the page names no build")
	}
	for target, want := range map[string]string{
		script:                                "public, max-age=31536000, immutable",
		"/assets/0123456789abcdef/js/desk.js": "no-cache",
		"/assets/js/desk.js":                  "no-cache",
	} {
		if c := get(t, "GET", target).Header.Get("Cache-Control"); c != want {
			t.Errorf("%s: Cache-Control %q", target, c)
		}
	}
}

func TestKnownTagIsNotSentAgain(t *testing.T) {
	for _, encoding := range []string{"identity", "gzip"} {
		tag := get(t, "GET", "/", "Accept-Encoding", encoding).Header.Get("ETag")
		for _, header := range []string{tag, `"other", W/` + tag, "*"} {
			r := get(t, "GET", "/", "Accept-Encoding", encoding, "If-None-Match", header)
			if r.StatusCode != http.StatusNotModified || len(bodyOf(t, r)) != 0 || r.Header.Get("Content-Security-Policy") == "" {
				t.Errorf("%s, If-None-Match %s: %d", encoding, header, r.StatusCode)
			}
		}
		if r := get(t, "GET", "/", "Accept-Encoding", encoding, "If-None-Match", `"other"`); r.StatusCode != 200 {
			t.Errorf("unknown tag: %d", r.StatusCode)
		}
	}
}

func TestCompressedBodyIsTheSameAndHasItsOwnTag(t *testing.T) {
	plain, packed := get(t, "GET", "/assets/js/desk.js"), get(t, "GET", "/assets/js/desk.js", "Accept-Encoding", "br, gzip;q=0.8")
	if packed.Header.Get("Content-Encoding") != "gzip" || packed.Header.Get("ETag") == plain.Header.Get("ETag") || packed.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("headers: %v", packed.Header)
	}
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(unpacked)
	if err != nil || !bytes.Equal(got, bodyOf(t, plain)) {
		t.Errorf("differs from the plain body: %v", err)
	}
	for _, header := range []string{"gzip;q=0", "gzip; q=0.000", "br", ""} {
		if e := get(t, "GET", "/assets/js/desk.js", "Accept-Encoding", header).Header.Get("Content-Encoding"); e != "" {
			t.Errorf("Accept-Encoding %q answered with %q", header, e)
		}
	}
}

func TestPolicyLeavesNoRoomForInlineCode(t *testing.T) {
	for _, target := range []string{"/", "/track/abc", "/courier", "/faults", "/webhooks"} {
		r := get(t, "GET", target)
		policy := r.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "worker-src 'self'", "trusted-types default", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: policy lacks %s", target, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "blob:") || r.Header.Get("Referrer-Policy") != "no-referrer" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", target, r.Header)
		}
		if inline := regexp.MustCompile(`<script(?:[^>]*)>[^<]|<style|style=|\son\w+=`).FindString(string(bodyOf(t, r))); inline != "" {
			t.Errorf("%s has inline code: %s", target, inline)
		}
	}
}

// A module missing from the preloads costs the first visit a round trip for each
// level of imports; one too many is fetched for nothing.
func TestPagesPreloadExactlyTheModulesTheyImport(t *testing.T) {
	s, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"desk", "track", "courier", "faults", "webhooks"} {
		want := map[string]bool{}
		imported(t, s, "js/"+page+".js", want)
		delete(want, "js/"+page+".js")
		var got []string
		for _, m := range regexp.MustCompile(`modulepreload" href="/assets/[0-9a-f]+/([^"]+)"`).FindAllStringSubmatch(string(s.files[page+".html"].plain), -1) {
			got = append(got, m[1])
			if !want[m[1]] {
				t.Errorf("%s preloads %s for nothing", page, m[1])
			}
		}
		for name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("%s does not preload %s", page, name)
			}
		}
	}
}

var importing = regexp.MustCompile(`(?m)(?:^import|^export|^\})[^;]*?from ?"(\.[^"]+)"|\bfrom"(\.[^"]+)"`)

func imported(t *testing.T, s *site, name string, seen map[string]bool) {
	t.Helper()
	f, found := s.files[name]
	if !found {
		t.Fatalf("import of %s, which does not exist", name)
	}
	if seen[name] {
		return
	}
	seen[name] = true
	for _, m := range importing.FindAllStringSubmatch(string(f.plain), -1) {
		imported(t, s, path.Join(path.Dir(name), m[1]+m[2]), seen)
	}
}

func TestAssetsNameNoOtherHost(t *testing.T) {
	hosts := regexp.MustCompile(`https?://[^\s"'` + "`" + `)]+`)
	err := fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(name, "LICENSE") || strings.HasPrefix(name, "assets/vendor/maplibre-gl") { // names its home in comments and credits
			return err
		}
		b, err := embedded.ReadFile(name)
		for _, url := range hosts.FindAllString(string(b), -1) {
			if !strings.HasPrefix(url, "http://www.w3.org/") { // names of XML namespaces
				t.Errorf("%s: %s", name, url)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
