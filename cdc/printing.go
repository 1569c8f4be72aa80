package cdc

import (
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// SnapshotSetting is on in the transactions that read a table for a snapshot.
// Where row-level security hides rows from this role, a policy that lets it
// read must ask for the setting, such as
//
//	CREATE POLICY cdc ON t FOR SELECT USING (current_setting('waybill.cdc_snapshot', true) = 'on')
//
// The stream itself knows no row-level security.
const SnapshotSetting = "waybill.cdc_snapshot"

// printing is how Postgres is to print values: the same in the stream and in a
// snapshot, whatever role, database and server are set to.
var printing = [...]struct{ name, value string }{
	{"client_encoding", "UTF8"},
	{"datestyle", "ISO"},
	{"intervalstyle", "iso_8601"},
	{"timezone", "UTC"},
	{"bytea_output", "hex"},
	{"extra_float_digits", "3"}, // the shortest that reads back the same
}

// printer is conn with printing set.
func printer(conn *pgconn.Config) *pgconn.Config {
	c := conn.Copy()
	for _, s := range printing {
		c.RuntimeParams[s.name] = s.value
	}
	return c
}

// beginSnapshot opens a transaction that reads one state of the database and
// prints as the stream does. It gives the state's name, of which see
// [visibility]. Its commit is in the WAL at once, for the stream to come to.
var beginSnapshot = func() string {
	var b strings.Builder
	b.WriteString("BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL " + SnapshotSetting + " = 'on'; SET LOCAL synchronous_commit = local; ")
	for _, s := range printing {
		b.WriteString("SET LOCAL " + s.name + " = '" + s.value + "'; ")
	}
	b.WriteString("SELECT pg_current_snapshot()::text")
	return b.String()
}()
