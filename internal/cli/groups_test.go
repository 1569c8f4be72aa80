package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/consumer"
)

func TestWhereAResetGoesIsRead(t *testing.T) {
	for text, want := range map[string]consumer.To{
		"beginning": consumer.ToBeginning(), "now": consumer.ToNow(), "0": consumer.ToOffset(0), "17": consumer.ToOffset(17),
		"2026-03-01T12:00:00Z": consumer.ToTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
	} {
		if got, err := parseTo(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "-1", "yesterday", "2026-03-01 12:00", "1.5"} {
		if code, _, errOut := command("groups", "reset", "g", "--to", bad); code != exitUsage || !strings.Contains(errOut, "--to") {
			t.Errorf("%q: %d %s", bad, code, errOut)
		}
	}
}

func TestAGroupsPartitionsShowWhatIsStopped(t *testing.T) {
	next, now := int64(7), time.Now()
	rows := partitionRows([]consumer.PartitionState{
		{Topic: "t", Next: &next, SavedAt: &now, Since: &now, Stopped: "made anew"},
		{Topic: "t", Partition: 1, Stalled: "key k", Parked: 3, Keys: 2, Gaps: 1},
	})
	if rows[1][2] != "7" || rows[1][7] != "stopped: made anew" {
		t.Errorf("%q", rows[1])
	}
	if rows[2][2] != "none" || rows[2][6] != "3 of 2 keys, 1 at a gap" || rows[2][7] != "stalled: key k" {
		t.Errorf("%q", rows[2])
	}
}

func TestAGroupOfThisDatabaseIsShown(t *testing.T) {
	db, dsn := migrated(t)
	if err := consumer.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	contain(t, says(t, "groups", "show", "g", "--database", dsn), "has read nothing")
	run(t, db, `INSERT INTO waybill.watermark VALUES ('g', 'things', 3, gen_random_uuid(), -1, 42, now(), 42)`)
	run(t, db, `INSERT INTO waybill.owner (group_name, topic, partition, epoch, member, stopped) VALUES ('g', 'things', 3, 5, 'm', 'cut back')`)
	contain(t, says(t, "groups", "show", "g", "--database", dsn), "things", "42", "stopped: cut back")
	contain(t, says(t, "groups", "gaps", "g", "--database", dsn), "has reported no gaps")
	run(t, db, `INSERT INTO waybill.gap (kind, group_name, topic, partition, "offset", event_id, tenant, key, first, last)
		VALUES ('missing', 'g', 'things', 3, 7, gen_random_uuid(), 't', 'k', 4, 6)`)
	contain(t, says(t, "groups", "gaps", "g", "--database", dsn), "missing", "4 to 6", "3@7")
	contain(t, says(t, "groups", "show", "g", "--json", "--database", dsn), `"next": 42`, `"epoch": 5`)
}
