//go:build unix

// Package local keeps a Postgres server in a directory, for one machine:
// development, trials and single-host installations.
//
// It promises a durable server (fsync and full_page_writes on, logical
// replication enabled) that listens on loopback alone behind generated
// passwords, that a directory never has two servers, and that a server which
// outlived a killed process is adopted or stopped by the next Start. It does
// not back up, replicate or upgrade: data of another major version is refused.
//
// Layout of Dir: data (or a link to it), credentials.json, postgres.log, lock.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Config says where the server lives. Only Dir is required.
type Config struct {
	// Dir holds the server's files. It is made if it is not there.
	Dir string
	// Port on 127.0.0.1; 0 takes a free one.
	Port int
	// Logger hears what happens to the server. Default: silence.
	Logger *slog.Logger
	// Settings are added to the server's configuration, e.g. "work_mem": "8MB".
	Settings map[string]string
	// Roles are made beside the application's, which may act as each by SET
	// ROLE: for parts of a program that are to be kept from each other's tables.
	Roles []string
	// StopTimeout is what an orderly shutdown may take. Default 10 s.
	StopTimeout time.Duration
	// Binaries is a folder with postgres and initdb. Default: the first on
	// PATH, else the newest in the usual folders, else a download.
	Binaries string
	// CacheDir keeps downloaded binaries. Default: the user's cache folder.
	CacheDir string
	// DownloadTimeout bounds fetching binaries where none are installed.
	// Default 2 min, negative forbids it.
	DownloadTimeout time.Duration

	refuge  string   // where data lives that the server's user cannot reach in Dir
	folders []string // where to look for programs
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("local postgres: no directory given")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("local postgres in %s: %w", c.Dir, err)
	}
	c.Dir = dir
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.StopTimeout <= 0 {
		c.StopTimeout = 10 * time.Second
	}
	if c.DownloadTimeout == 0 {
		c.DownloadTimeout = 2 * time.Minute
	}
	if c.refuge == "" {
		c.refuge = "/var/lib/waybill"
	}
	if c.folders == nil {
		c.folders = folders(filepath.SplitList(os.Getenv("PATH"))) //nolint:forbidigo // as exec.LookPath does
	}
	return c, nil
}

// Server is a running Postgres.
type Server struct {
	cfg     Config
	owner   *owner
	lock    *os.File
	secret  credentials
	proc    *process
	port    int
	adopted bool

	ending  chan struct{} // closed to end the watch
	watched sync.WaitGroup
	once    sync.Once
	done    chan struct{}
	mu      sync.Mutex
	err     error
	stopErr error
}

// Start returns once the server in cfg.Dir accepts connections: one that was
// left running is adopted where it fits, else it is stopped first. Until ctx
// ends it waits for crash recovery.
//
// ErrInUse means another live process has the directory. A taken port is
// syscall.EADDRINUSE.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, ending: make(chan struct{}), done: make(chan struct{})}
	if err := s.start(ctx); err != nil {
		s.unlock()
		return nil, fmt.Errorf("local postgres in %s: %w", cfg.Dir, err)
	}
	s.watched.Go(s.watch)
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	var err error
	if s.owner, err = serverOwner(); err != nil {
		return err
	}
	if err := s.openDir(); err != nil {
		return err
	}
	place, err := s.placeData()
	if err != nil {
		return err
	}
	fresh := !place.initialised()
	if s.secret, err = loadCredentials(s.cfg.Dir, fresh); err != nil {
		return err
	}
	if !fresh {
		if ok, err := s.adopt(ctx, place); ok || err != nil {
			return err
		}
	}
	return s.launch(ctx, place, fresh)
}

// DSN is the connection string of the application's role: it owns the database
// waybill, may replicate, and is bound by row-level security.
func (s *Server) DSN() string { return s.dsn(appRole, s.secret.Application, appDatabase) }

// AdminDSN is the connection string of the superuser, to the same database.
func (s *Server) AdminDSN() string { return s.dsn(adminRole, s.secret.Admin, appDatabase) }

func (s *Server) dsn(role, password, db string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(role, password),
		Host: "127.0.0.1:" + strconv.Itoa(s.port), Path: "/" + db, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Port is where the server listens on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// PID is the server's process.
func (s *Server) PID() int { return s.proc.pid }

// DataDir is where the server's files really are.
func (s *Server) DataDir() string { return s.proc.data }

// Adopted tells whether Start found the server running.
func (s *Server) Adopted() bool { return s.adopted }

// Done is closed when the server has ended, wanted or not.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is why the server ended without being asked to; nil while it runs and
// after Stop.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
