package doctor

import (
	"testing"

	"github.com/waybillhq/waybill/cdc"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// captured is a database of which cdc publishes the table shop.thing.
func captured(t *testing.T) *patient {
	t.Helper()
	p := healthy(t, pgtest.New(t))
	if err := pg.Migrate(t.Context(), p.db, cdc.Migration()); err != nil {
		t.Fatal(err)
	}
	p.exec(`CREATE SCHEMA shop`)
	p.exec(`CREATE TABLE shop.thing (id int PRIMARY KEY)`)
	p.exec(`CREATE PUBLICATION waybill_cdc FOR TABLE shop.thing`)
	p.exec(`INSERT INTO waybill.cdc_tables SELECT (jsonb_populate_record(NULL::waybill.cdc_tables, jsonb_build_object('slot', $1::text,
		'name', 'shop.thing', 'topic', 'thing', 'topic_id', '', 'relation', 0, 'key_columns', '[]'::jsonb, 'columns', '[]'::jsonb,
		'attributes', 1, 'identity', 'd', 'requested', 1, 'served', 1, 'reason', '', 'sweep', false, 'phase', 'done', 'rows_read', 0,
		'deleted', 0))).*`, p.cdcSlot())
	return p
}

func (p *patient) cdcSlot() string { return cdc.SlotName(p.db.Config().ConnConfig.Database) }

func (p *patient) makeCDCSlot() {
	p.t.Helper()
	p.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, p.cdcSlot())
}

// A table that is suspended is in no publication, where all looked well.
func TestTableWhoseChangesAreNotPublishedIsTold(t *testing.T) {
	t.Parallel()
	p := captured(t)
	p.makeCDCSlot()
	p.exec(`UPDATE waybill.cdc_tables SET error = 'it has no primary key: ALTER TABLE'`)
	p.exec(`ALTER PUBLICATION waybill_cdc DROP TABLE shop.thing`)
	p.finding("cdc tables").is(t, Fail, "shop.thing", "it has no primary key", "ALTER TABLE", "waybill cdc status")
}

// A slot that nobody reads keeps WAL from its first byte on, and tells nothing.
func TestCDCSlotThatNobodyReadsIsTold(t *testing.T) {
	t.Parallel()
	p := captured(t)
	p.makeCDCSlot()
	p.finding("cdc slot").is(t, Warn, p.cdcSlot(), "waybill run cdc", "waybill cdc drop")
}

func TestCDCSlotThatIsGoneIsTold(t *testing.T) {
	t.Parallel()
	p := captured(t)
	p.finding("cdc slot").is(t, Warn, p.cdcSlot(), "missing", "waybill run cdc")
}

func TestDatabaseWithoutCDCIsWell(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	p.finding("cdc slot").is(t, OK)
	p.finding("cdc tables").is(t, OK)
}
