package catalogue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// fresh is how long what was asked of the registry is shown: a page that is
// asked for by many costs the registry little.
const fresh = 30 * time.Second

// within bounds the asking.
const within = 10 * time.Second

// Server serves the catalogue at /catalogue/ and /catalogue/asyncapi.json.
type Server struct {
	Get     func(context.Context) (*Catalogue, error)
	Version string // of the AsyncAPI document
	Logger  *slog.Logger

	asking singleflight.Group
	mu     sync.Mutex
	last   *Catalogue
	at     time.Time
}

// Register adds the addresses to mux.
func (s *Server) Register(mux *http.ServeMux) {
	mux.Handle("GET /catalogue", http.RedirectHandler("/catalogue/", http.StatusMovedPermanently))
	mux.HandleFunc("GET /catalogue/{$}", s.page)
	mux.HandleFunc("GET /catalogue/asyncapi.json", s.document)
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, "text/html; charset=utf-8", func(c *Catalogue) ([]byte, error) {
		var out bytes.Buffer
		language := r.URL.Query().Get("lang")
		if language == "" {
			language = r.Header.Get("Accept-Language")
		}
		err := c.Page(&out, Language(language))
		return out.Bytes(), err
	})
}

func (s *Server) document(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, "application/json", func(c *Catalogue) ([]byte, error) { return c.AsyncAPI(s.Version, "") })
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, kind string, write func(*Catalogue) ([]byte, error)) {
	c, err := s.get(r.Context())
	var body []byte
	if err == nil {
		body, err = write(c)
	}
	if err != nil {
		s.Logger.WarnContext(r.Context(), "catalogue not shown", "error", err)
		http.Error(w, "The schema registry does not answer. Try again soon.", http.StatusServiceUnavailable)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Language")
	_, _ = w.Write(body) // the client left: nobody to tell
}

// get asks once for all who come meanwhile, and goes on when the first of them
// leaves.
func (s *Server) get(ctx context.Context) (*Catalogue, error) {
	if c := s.fresh(); c != nil {
		return c, nil
	}
	answer := s.asking.DoChan("", func() (any, error) {
		if c := s.fresh(); c != nil { // since we looked, somebody else's asking has ended
			return c, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		c, err := s.Get(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last, s.at = c, time.Now()
		return c, nil
	})
	select {
	case r := <-answer:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*Catalogue), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fresh is what was found lately, nil if nothing was.
func (s *Server) fresh() *Catalogue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || time.Since(s.at) >= fresh {
		return nil
	}
	return s.last
}

// policy lets the page's own script run and nothing be fetched. The script must
// have no comments: the template would leave them out, and the hash were of
// another.
var policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src 'sha256-" + scriptHash() + "'"

func scriptHash() string {
	_, script, _ := strings.Cut(pageText, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	sum := sha256.Sum256([]byte(script))
	return base64.StdEncoding.EncodeToString(sum[:])
}
