package app

import (
	"context"
	"errors"
	"net"
	"strconv"
)

// portsFree names all addresses that are taken or cannot be had, each with the
// flag that moves it, before anything is started: one at a time they would cost
// a start each. Whoever takes one in the moment between is told of later.
func (a *App) portsFree(ctx context.Context) error {
	var errs []error
	try := func(what, addr, flag string) {
		var lc net.ListenConfig
		ln, err := lc.Listen(ctx, "tcp", addr)
		if err != nil {
			errs = append(errs, flagHint(&portError{what, err}, flag))
			return
		}
		_ = ln.Close() // it was opened to be closed
	}
	try("API", a.cfg.Listen, "--listen")
	if len(a.cfg.Brokers) == 0 {
		try("broker", a.cfg.KafkaListen, "--kafka-listen")
	}
	if a.cfg.RegistryURL == "" {
		try("registry", a.cfg.RegistryListen, "--registry-listen")
	}
	// By itself a taken port of Postgres is told by its start, which knows a
	// server that a killed process of this folder left behind.
	if len(errs) > 0 && a.cfg.DatabaseURL == "" && a.cfg.PostgresPort > 0 {
		try("Postgres", net.JoinHostPort("127.0.0.1", strconv.Itoa(a.cfg.PostgresPort)), "--postgres-port")
	}
	return errors.Join(errs...)
}

// portError is of an address that one part wants.
type portError struct {
	what string
	error
}

func (e *portError) Error() string { return e.what + ": " + e.error.Error() }
func (e *portError) Unwrap() error { return e.error }
