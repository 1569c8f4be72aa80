package app

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/cdc"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/projection"
	"github.com/waybillhq/waybill/webhook"
)

// tenantsByOtherNames are tables of tenants whose column is not called tenant.
var tenantsByOtherNames = map[string]string{
	"tenants.tenants": "it is the tenant, by id",
}

// unwalled are tables with a tenant whose rows every session of theirs sees, and
// why that is so. A pattern stands for a table and its partitions.
var unwalled = []struct{ tables, why string }{
	{`waybill\.outbox_events.*`, "the relay carries all tenants' events; a row is there to be published"},
	{`waybill\.outbox_later.*`, "the same, before their time"},
	{`waybill\.parked`, "the runtime works off a group's events of all tenants; operators ask for them across tenants"},
	{`waybill\.(gap|sequence)`, "what a group counts, of all tenants"},
	{`waybill\.dead_action`, "what operators did"},
	{`waybill\.queue.*`, "the keeper and the stores go over all queues; each statement of an API's names its tenant"},
}

// What a statement of the product forgot, the server must not show: every table
// that has a tenant is walled, also for the role that owns it.
func TestEveryTableOfTenantsIsWalledOrSaysWhyNot(t *testing.T) {
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := pg.Migrate(t.Context(), db, append(allTables(), cdc.Migration())...); err != nil {
		t.Fatal(err)
	}
	for _, ensure := range []func(context.Context, *pgxpool.Pool) error{consumer.EnsureDays, webhook.EnsureDays} {
		if err := ensure(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	if err := projection.NewLog(db, projection.LogConfig{}).EnsureDays(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(t.Context(), `SELECT n.nspname || '.' || c.relname AS name, c.relrowsecurity, c.relforcerowsecurity,
			(SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid) AS policies,
			EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped) AS tenant
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_'
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	type table struct {
		Name            string
		Enabled, Forced bool
		Policies        int
		Tenant          bool
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	if err != nil {
		t.Fatal(err)
	}
	walled, used := map[string]int{}, map[string]bool{}
	for _, c := range all {
		if !c.Tenant && tenantsByOtherNames[c.Name] == "" {
			continue
		}
		why := ""
		for _, u := range unwalled {
			if regexp.MustCompile("^" + u.tables + "$").MatchString(c.Name) {
				why, used[u.tables] = u.why, true
			}
		}
		switch held := c.Enabled && c.Forced && c.Policies > 0; {
		case !held && why == "":
			t.Errorf("%s has a tenant and no forced row-level security: enabled %v, forced %v, %d policies", c.Name, c.Enabled, c.Forced, c.Policies)
		case held && why != "":
			t.Errorf("%s is walled: strike it from the exceptions", c.Name)
		case held:
			walled[regexp.MustCompile(`\..*`).ReplaceAllString(c.Name, "")]++
		}
	}
	for _, u := range unwalled {
		if !used[u.tables] {
			t.Errorf("the exception %s is of no table", u.tables)
		}
	}
	for _, schema := range []string{"orders", "couriers", "billing", "dispatch", "tracking", "tenants", "analytics", "saga", "webhook"} {
		if walled[schema] == 0 {
			t.Errorf("no table of %s was looked at", schema)
		}
	}
}
