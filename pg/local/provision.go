//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// provision makes sure the application's role and database are there. It asks
// each time: a kill may have come between initdb and here.
func (s *Server) provision(ctx context.Context) error {
	conn, err := s.connectAdmin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var role, db bool
	err = conn.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1),
		exists (select from pg_database where datname = $2)`, appRole, appDatabase).Scan(&role, &db)
	if err != nil {
		return fmt.Errorf("look for role and database: %w", err)
	}
	if !role {
		// The password is base32 text: nothing in it to escape.
		_, err := conn.Exec(ctx, "create role "+appRole+
			" login replication nosuperuser nobypassrls password '"+s.secret.Application+"'")
		if err != nil {
			return fmt.Errorf("create role: %w", err)
		}
	}
	if !db {
		if _, err := conn.Exec(ctx, "create database "+appDatabase+" owner "+appRole+" template template0"); err != nil {
			return fmt.Errorf("create database: %w", err)
		}
	}
	return nil
}

// connectAdmin tries again while the server says it is just starting.
func (s *Server) connectAdmin(ctx context.Context) (conn *pgx.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, adoptPatience)
	defer cancel()
	perr := poll(ctx, 5*time.Millisecond, func() (bool, error) {
		if conn, err = pgx.Connect(ctx, s.AdminDSN()); err == nil {
			return true, nil
		}
		var server *pgconn.PgError
		if errors.As(err, &server) && server.Code != "57P03" {
			return false, err
		}
		return false, nil
	})
	if perr != nil {
		return nil, fmt.Errorf("connect as administrator: %w", errors.Join(perr, err))
	}
	return conn, nil
}
