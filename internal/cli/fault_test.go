package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/pg"
)

func TestFaultsAreSetListedAndCleared(t *testing.T) {
	db, dsn := emptyDatabase(t)
	if err := pg.Migrate(t.Context(), db, faults.Migration()); err != nil {
		t.Fatal(err)
	}
	fault := func(args ...string) (int, string, string) {
		return command(append(append([]string{"fault"}, args...), "--database", dsn)...)
	}
	if code, out, errOut := fault("set", "billing-failure", "30", "--for", "5m"); code != 0 || out != "billing-failure: 30 % for 5m\n" {
		t.Errorf("%d %q %s", code, out, errOut)
	}
	if code, out, errOut := fault("set", "poison-event", "1"); code != 0 || out != "poison-event: 1 event until `waybill fault clear poison-event`\n" {
		t.Errorf("%d %q %s", code, out, errOut)
	}
	code, out, errOut := fault("ls")
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(rows) != 1+len(faults.Known()) || !strings.HasPrefix(rows[1], "billing-failure       30 %     in ") ||
		!strings.Contains(rows[1], operator()) || !strings.HasPrefix(rows[2], "broker-down           off      -  ") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	var all []faults.Setting
	_, out, _ = fault("ls", "--json")
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != len(faults.Known()) || all[0].Value != 30 || all[0].Until == nil {
		t.Errorf("%v %s", err, out)
	}
	if code, out, errOut := fault("clear", "billing-failure"); code != 0 || out != "billing-failure is off\n" {
		t.Errorf("%d %q %s", code, out, errOut)
	}
	if code, out, errOut := fault("clear", "billing-failure"); code != 0 || out != "billing-failure was off\n" {
		t.Errorf("%d %q %s", code, out, errOut)
	}
	if code, out, errOut := fault("set", "slow-consumer", "0", "--json"); code != 0 || !strings.Contains(out, `"value": 0`) {
		t.Errorf("%d %q %s", code, out, errOut)
	}
	if code, out, errOut := fault("clear", "--all"); code != 0 || out != "1 fault cleared\n" {
		t.Errorf("%d %q %s", code, out, errOut)
	}
}

func TestAFaultThatCannotBeSetIsAUsageError(t *testing.T) {
	db, dsn := emptyDatabase(t)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no tables yet": {[]string{"ls"}, exitFailed, "waybill up"},
		"no number":     {[]string{"set", "billing-failure", "30%"}, exitUsage, "whole number"},
		"both":          {[]string{"clear", "x", "--all"}, exitUsage, "waybill fault ls"},
		"neither":       {[]string{"clear"}, exitUsage, "--all"},
	} {
		if code, _, errOut := command(append(append([]string{"fault"}, c.args...), "--database", dsn)...); code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: %d %s", name, code, errOut)
		}
	}
	if err := pg.Migrate(t.Context(), db, faults.Migration()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown":   {[]string{"set", "biling-failure", "3"}, "billing-failure, broker-down"},
		"too much":  {[]string{"set", "billing-failure", "101"}, "0 to 100, in percent"},
		"below":     {[]string{"set", "--", "billing-failure", "-1"}, "0 to 100"},
		"past":      {[]string{"set", "broker-down", "1", "--for", "-1s"}, "720h"},
		"not there": {[]string{"clear", "everything"}, "slow-consumer"},
	} {
		args := append([]string{"fault", c.args[0], "--database", dsn}, c.args[1:]...)
		if code, _, errOut := command(args...); code != exitUsage || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: %d %s", name, code, errOut)
		}
	}
}
