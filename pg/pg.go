// Package pg is how the rest of the module reaches Postgres: a pool with sane
// limits, migrations that each package owns, transactions bound to a tenant,
// and the judgement whether an error is the database's fault or the
// statement's.
//
// It promises that no error it returns holds a password, that two processes
// migrating at once do not collide, and that a tenant's name never reaches SQL
// unescaped. It does not retry: the caller knows what may run twice.
//
// Row-level security binds the owner of a table only under
// ALTER TABLE ... FORCE ROW LEVEL SECURITY, and never a superuser or a role
// with BYPASSRLS.
package pg
