package cli

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/cdc"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
)

func TestChangesOfNothingAreAMistakeThatIsTold(t *testing.T) {
	_, dsn := emptyDatabase(t)
	for _, args := range [][]string{{"cdc", "status"}, {"cdc", "snapshot", "a.b"}} {
		code, _, errOut := command(append(args, "--database", dsn)...)
		if code != exitFailed || !strings.Contains(errOut, "waybill up") {
			t.Errorf("%v: %d %s", args, code, errOut)
		}
	}
}

func TestStatusOfChangesSaysWhatIsWrong(t *testing.T) {
	db, dsn := emptyDatabase(t)
	if err := pg.Migrate(t.Context(), db, incident.Migration(), cdc.Migration()); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := command("cdc", "status", "--database", dsn)
	if code != 0 || !strings.Contains(out, "no table's changes") || !strings.Contains(out, "missing") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	slot := cdc.SlotName(db.Config().ConnConfig.Database)
	for _, sql := range []string{
		`INSERT INTO waybill.cdc_slots (slot, losses) VALUES ('` + slot + `', 2)`,
		`INSERT INTO waybill.cdc_tables (slot, name, topic, topic_id, relation, key_columns, columns, attributes, identity, error, reason, phase, rows_read, rows_total, served)
			VALUES ('` + slot + `', 's.bad', 't', '', 1, '{}', '{}', 1, 'd', 'no primary key', '', 'waiting', 0, NULL, 0),
				('` + slot + `', 's.slow', 'u', '', 1, '{}', '{}', 1, 'f', NULL, '', 'reading', 70, 1000, 1),
				('` + slot + `', 's.unknown', 'v', '', 1, '{}', '{}', 1, 'd', NULL, '', 'reading', 7, NULL, 1)`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errOut = command("cdc", "status", "--database", dsn)
	for _, say := range []string{"s.bad: no primary key", "70 of about 1000", "7 so far", "2 times", "whole row", "key only"} {
		if code != 0 || !strings.Contains(out, say) {
			t.Errorf("no %q: %d %s %s", say, code, out, errOut)
		}
	}
	code, _, errOut = command("cdc", "snapshot", "s.other", "--database", dsn)
	if code != exitFailed || !strings.Contains(errOut, "s.bad, s.slow") {
		t.Errorf("%d %s", code, errOut)
	}
}

func TestASnapshotThatCannotComeIsRefusedWithItsReason(t *testing.T) {
	db, dsn := emptyDatabase(t)
	if err := pg.Migrate(t.Context(), db, incident.Migration(), cdc.Migration()); err != nil {
		t.Fatal(err)
	}
	slot := cdc.SlotName(db.Config().ConnConfig.Database)
	if _, err := db.Exec(t.Context(), `INSERT INTO waybill.cdc_tables (slot, name, topic, topic_id, relation, key_columns, columns, attributes, identity, error, reason)
		VALUES ($1, 's.bad', 't', '', 1, '{}', '{}', 1, 'd', 'no primary key', ''), ($1, 's.gone', 'u', '', 1, '{}', '{}', 1, 'd', NULL, '')`, slot); err != nil {
		t.Fatal(err)
	}
	for name, say := range map[string]string{"s.bad": "no primary key", "s.gone": "no such table"} {
		code, _, errOut := command("cdc", "snapshot", name, "--database", dsn)
		if code != exitFailed || !strings.Contains(errOut, say) {
			t.Errorf("%s: %d %s", name, code, errOut)
		}
	}
	var asked int64
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM waybill.cdc_tables WHERE reason <> ''`).Scan(&asked); err != nil || asked != 0 {
		t.Errorf("%d asked for all the same: %v", asked, err)
	}
}
