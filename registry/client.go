package registry

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"golang.org/x/sync/singleflight"
)

const (
	defaultTimeout = 5 * time.Second
	connections    = 16
	// answerLimit is the most of an answer that is read; a schema is at most
	// a megabyte everywhere.
	answerLimit = 8 << 20
)

// Config is how to reach a registry. The zero value asks without credentials.
type Config struct {
	Username, Password string // basic authentication; also taken from the URL
	BearerToken        string
	TLS                *tls.Config
	Timeout            time.Duration // of one request; 5 s if zero
}

// Client asks a registry. It is safe for concurrent use.
type Client struct {
	sr   *sr.Client
	http *http.Client
	url  string // without credentials

	asking  singleflight.Group
	schemas sync.Map // id -> *written
	latest  sync.Map // subject -> latest
}

// New makes a client of the registry at address, such as
// http://127.0.0.1:8081. Nothing is asked yet.
func New(address string, cfg Config) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("registry URL: want http://HOST:PORT or https://HOST:PORT")
	}
	if u.User != nil && cfg.Username == "" {
		cfg.Username = u.User.Username()
		cfg.Password, _ = u.User.Password()
	}
	u.User = nil
	c := &Client{http: newHTTP(cfg), url: strings.TrimRight(u.String(), "/")}
	c.sr, err = sr.NewClient(cfg.options(c.url, c.http)...)
	if err != nil {
		return nil, fmt.Errorf("registry client: %w", err)
	}
	return c, nil
}

// Close gives idle connections back. The client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// URL is where the registry is, without credentials.
func (c *Client) URL() string { return c.url }

func (cfg Config) options(address string, h *http.Client) []sr.ClientOpt {
	opts := []sr.ClientOpt{sr.URLs(address), sr.HTTPClient(h), sr.UserAgent("waybill")}
	if cfg.BearerToken != "" {
		return append(opts, sr.BearerToken(cfg.BearerToken))
	}
	if cfg.Username != "" {
		return append(opts, sr.BasicAuth(cfg.Username, cfg.Password))
	}
	return opts
}

func newHTTP(cfg Config) *http.Client {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	t := http.DefaultTransport.(*http.Transport).Clone() // documented to be one
	t.TLSClientConfig = cfg.TLS
	t.MaxIdleConnsPerHost = connections
	return &http.Client{Transport: bounded{t}, Timeout: cfg.Timeout}
}

// bounded keeps a broken or hostile registry from filling memory.
type bounded struct{ *http.Transport }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, answerLimit), resp.Body}
	return resp, nil
}
