package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Addresses is where a running Waybill is to be found. Database holds the
// password: the file it is kept in is its owner's alone.
type Addresses struct {
	HTTP     string `json:"http"`
	Kafka    string `json:"kafka"`
	Registry string `json:"registry"`
	Database string `json:"database"`
	DemoKey  string `json:"demo_key"`
	Relay    string `json:"relay"` // how it reads the outbox; empty is wal
	PID      int    `json:"pid"`
}

// OnThisMachine tells whether broker and registry are at loopback addresses.
func (a Addresses) OnThisMachine() bool {
	for _, text := range []string{a.Kafka, strings.TrimPrefix(a.Registry, "http://")} {
		at, err := netip.ParseAddrPort(text)
		if err != nil || !at.Addr().IsLoopback() {
			return false
		}
	}
	return true
}

const addressFile = "running.json"

// Addresses of this App.
func (a *App) Addresses() Addresses {
	return Addresses{
		HTTP: "http://" + a.httpAddr, Kafka: a.engines.broker.Brokers[0],
		Registry: a.engines.registry.URL(), Database: a.engines.dsn, DemoKey: a.demoKey, Relay: a.cfg.Outbox.Relay, PID: os.Getpid(),
	}
}

// WriteAddresses leaves the addresses in the data folder, so that other
// commands find what runs there.
func (a *App) WriteAddresses() error {
	if a.lock == nil {
		return nil
	}
	b, err := json.MarshalIndent(a.Addresses(), "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(a.cfg.Dir, addressFile)
	if err := writePrivate(path, append(b, '\n')); err != nil {
		return fmt.Errorf("leave addresses: %w", err)
	}
	a.stack.onStop("addresses", removeFile(path))
	return nil
}

// writePrivate puts a new file in the place of path, for its owner alone. It
// follows no link that stands there and inherits no old file's mode.
func writePrivate(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// ReadAddresses is what a Waybill of ours in dir left, zero if none did. One
// that was killed left it too: then nothing answers there, and the caller says
// so. A file of somebody else's is passed over: a command would otherwise talk
// to whatever the folder it happens to be in names.
func ReadAddresses(dir string) (a Addresses) {
	path := filepath.Join(dir, addressFile)
	if !ours(path) {
		return Addresses{}
	}
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &a) != nil {
		return Addresses{}
	}
	return a
}

func ours(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

func removeFile(path string) func(context.Context) error {
	return func(context.Context) error { return os.Remove(path) }
}

// Client is a client of the broker, for the caller to close.
func (a *App) Client() (*kgo.Client, error) { return a.engines.broker.Client() }

// Uptime is the time since Start was called.
func (a *App) Uptime() time.Duration { return time.Since(a.started) }
