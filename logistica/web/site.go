package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
)

// site is every file the pages need, read and hashed once.
type site struct {
	build string
	files map[string]file
}

// file is one response body in both its encodings.
type file struct {
	mime   string
	etag   string
	plain  []byte
	gzip   func() []byte // made once, when first asked for; nil where it gains nothing
	policy bool          // a document: gets the page's security headers
	place  bool          // a document that may ask where its visitor is
}

// mimeTypes is closed on purpose: the system's table differs between machines,
// and browsers refuse modules and styles under a wrong type.
var mimeTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".md":   "text/plain; charset=utf-8",

	".geojson": "application/geo+json",
}

// buildMark in a page stands for the hash of all assets. Imports are relative,
// so one hash in the page's own links pins every module to the same build.
const buildMark = "{{build}}"

func newSite(root fs.FS, extra map[string][]byte) (*site, error) {
	raw, err := readAll(root)
	if err != nil {
		return nil, err
	}
	for name, body := range extra {
		raw[name] = body
	}
	s := &site{build: hashOf(raw), files: make(map[string]file, len(raw))}
	for name, body := range raw {
		s.files[name] = s.prepare(name, body)
	}
	return s, nil
}

func readAll(root fs.FS) (map[string][]byte, error) {
	raw := map[string][]byte{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw[name], err = fs.ReadFile(root, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read embedded pages: %w", err)
	}
	return raw, nil
}

func (s *site) prepare(name string, body []byte) file {
	ext := path.Ext(name)
	f := file{mime: mimeTypes[ext], plain: body, policy: ext == ".html", place: name == "courier.html"}
	if f.mime == "" {
		f.mime = "text/plain; charset=utf-8"
	}
	if f.policy {
		f.plain = bytes.ReplaceAll(body, []byte(buildMark), []byte(s.build))
	}
	f.etag = digest(f.plain)
	f.gzip = sync.OnceValue(func() []byte { return compress(f.plain) })
	return f
}

// compress is nil where the result would hardly be smaller, or where it failed:
// the plain body serves as well.
func compress(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(body)
	if err = errors.Join(err, w.Close()); err != nil || out.Len() > len(body)*9/10 {
		return nil
	}
	return out.Bytes()
}

func hashOf(raw map[string][]byte) string {
	names := make([]string, 0, len(raw))
	for name := range raw {
		names = append(names, name)
	}
	slices.Sort(names)
	var all strings.Builder
	for _, name := range names {
		all.WriteString(name + "\x00" + digest(raw[name]) + "\n")
	}
	return digest([]byte(all.String()))
}

// digest is short enough for a path and long enough that two builds differ.
func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

// page serves one file at an address that names no build. It is revalidated each
// time, because a document names the build whose assets are kept for good.
func (s *site) page(name string) http.Handler {
	f := s.files[name]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.serve(w, r, "no-cache")
	})
}

// assets serves /assets/{build}/... for good and /assets/... revalidated. A page
// opened before an upgrade asks for a build that is gone: it gets today's file,
// not kept.
func (s *site) assets() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, cache := r.PathValue("path"), "no-cache"
		if first, rest, found := strings.Cut(name, "/"); found && isBuild(first) {
			name = rest
			if first == s.build {
				cache = "public, max-age=31536000, immutable"
			}
		}
		f, found := s.files[name]
		if !found || f.policy { // a page has one address
			http.NotFound(w, r)
			return
		}
		f.serve(w, r, cache)
	})
}

func isBuild(segment string) bool {
	_, err := hex.DecodeString(segment)
	return err == nil && len(segment) == 16
}
