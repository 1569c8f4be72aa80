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
func (s *Server) provision(ctx context.Context, p *process) error {
	conn, err := s.connectAdmin(ctx, p)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var role, db, spare bool
	err = conn.QueryRow(ctx, `select exists (select from pg_roles where rolname = $1),
		exists (select from pg_database where datname = $2), exists (select from pg_database where datname = $3)`,
		appRole, appDatabase, initialDatabase).Scan(&role, &db, &spare)
	if err != nil {
		return fmt.Errorf("look for role and database: %w", err)
	}
	for _, sql := range s.missing(role, db, spare) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("create role and database: %w", err)
		}
	}
	return nil
}

// missing is what there is to do. The database that initdb made is renamed:
// creating another would take as long as all else after initdb.
func (s *Server) missing(role, db, spare bool) (todo []string) {
	if !role {
		// The password is base32 text: nothing in it to escape.
		todo = append(todo, "create role "+appRole+
			" login replication nosuperuser nobypassrls password '"+s.secret.Application+"'")
	}
	switch {
	case db:
	case spare:
		todo = append(todo, "alter database "+initialDatabase+" rename to "+appDatabase,
			"comment on database "+appDatabase+" is null")
	default:
		todo = append(todo, "create database "+appDatabase+" template template0")
	}
	return append(todo, "alter database "+appDatabase+" owner to "+appRole)
}

// connectAdmin tries again while the server says it is just starting.
func (s *Server) connectAdmin(ctx context.Context, p *process) (conn *pgx.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	perr := poll(ctx, 5*time.Millisecond, func() (bool, error) {
		if conn, err = pgx.Connect(ctx, s.dsn(adminRole, s.secret.Admin, "template1")); err == nil {
			return true, nil
		}
		var server *pgconn.PgError
		if errors.As(err, &server) && server.Code != "57P03" {
			return false, err
		}
		gone, how := p.exited()
		return gone, how
	})
	if perr != nil {
		return nil, fmt.Errorf("connect as administrator: %w", errors.Join(perr, err))
	}
	return conn, nil
}
