package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/internal/doctor"
)

// Nothing answers at the addresses of these; the database has no tables.
func TestDoctorFailsAndSaysWhatMends(t *testing.T) {
	_, dsn := emptyDatabase(t)
	args := []string{"doctor", "--database", dsn, "--brokers", "127.0.0.1:1", "--registry", "http://127.0.0.1:1"}
	code, out, errOut := command(args...)
	if code != exitFailed || !strings.Contains(errOut, "checks failed, and ") {
		t.Errorf("%d %s", code, errOut)
	}
	contain(t, out, "ok    wal_level           logical\n", "fail  tables", "fail  broker", "fail  registry", "  mend  waybill up", "  why   ", " failed, ")
	code, out, _ = command(append(args, "--json")...)
	var all struct {
		Fail   int
		Checks []doctor.Finding
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != exitFailed || all.Fail < 3 || len(all.Checks) < 15 {
		t.Errorf("%d %v %s", code, err, out)
	}
	for _, f := range all.Checks {
		if f.Check == "" || f.Found == "" || f.Verdict == doctor.Fail && (f.Why == "" || f.Mend == "") {
			t.Errorf("lacks something: %+v", f)
		}
	}
}

func TestDoctorWantsADatabase(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("WAYBILL_DATABASE_URL", "")
	if code, _, errOut := command("doctor"); code != exitFailed || !strings.Contains(errOut, "--database") {
		t.Errorf("%d %s", code, errOut)
	}
}

func TestFindingsLineUp(t *testing.T) {
	var out strings.Builder
	found := []doctor.Finding{
		{Check: "a", Verdict: doctor.OK, Found: "well"},
		{Check: "long name", Verdict: doctor.Warn, Found: "not\nwell", Why: "reason", Mend: "DO THIS"},
	}
	if err := printFindings(&out, found, 0, false); err != nil {
		t.Fatal(err)
	}
	const want = `ok    a          well
warn  long name  not well
                 why   reason
                 mend  DO THIS

1 ok, 1 to watch, 0 failed
`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}
