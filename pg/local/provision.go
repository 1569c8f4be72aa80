//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// provision makes sure the application's role and database are there, and
// tries again while the server p is not ready for it. It asks each time: a kill
// may have come between initdb and here.
func (s *Server) provision(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var err error
	ended := poll(ctx, 5*time.Millisecond, func() (bool, error) {
		if err = s.provisionOnce(ctx); err == nil || !passing(err) {
			return true, nil
		}
		gone, how := p.exited()
		return gone, how
	})
	return errors.Join(err, ended)
}

func (s *Server) provisionOnce(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.dsn(adminRole, s.secret.Admin, "template1"))
	if err != nil {
		return fmt.Errorf("connect as administrator: %w", err)
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
	if err := s.makeRoles(ctx, conn); err != nil {
		return err
	}
	return s.closeWAL(ctx)
}

// makeRoles makes the configured roles, which nobody can log in as.
func (s *Server) makeRoles(ctx context.Context, conn *pgx.Conn) error {
	var sql strings.Builder
	for _, name := range s.cfg.Roles {
		role := pgx.Identifier{name}.Sanitize()
		fmt.Fprintf(&sql, "do $$ begin create role %s nologin; exception when duplicate_object then null; end $$; grant %s to "+appRole+";\n", role, role)
	}
	if sql.Len() == 0 {
		return nil
	}
	if _, err := conn.Exec(ctx, sql.String(), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("create roles: %w", err)
	}
	return nil
}

// closeWAL leaves writing logical messages to the application alone: what
// reads the WAL takes those with its prefix for events. By default everybody
// may write any.
func (s *Server) closeWAL(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.dsn(adminRole, s.secret.Admin, appDatabase))
	if err != nil {
		return fmt.Errorf("connect as administrator: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, `do $$ declare f regprocedure; begin
		for f in select oid from pg_proc where proname = 'pg_logical_emit_message' loop
			execute format('revoke execute on function %s from public', f);
			execute format('grant execute on function %s to `+strings.Join(s.writers(), ", ")+`', f);
		end loop; end $$`)
	if err != nil {
		return fmt.Errorf("keep others from writing logical messages: %w", err)
	}
	return nil
}

// writers are the roles of the application, as SQL.
func (s *Server) writers() []string {
	names := []string{appRole}
	for _, name := range s.cfg.Roles {
		names = append(names, pgx.Identifier{name}.Sanitize())
	}
	return names
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

// passing are the refusals of a server that is starting, recovering from a
// crash of one of its processes, or out of connections for the moment, and
// connections that broke.
func passing(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return true
	}
	return strings.HasPrefix(server.Code, "57P") || server.Code == "53300"
}
