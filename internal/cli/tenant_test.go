package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/pg"
)

func TestTenantsAndTheirKeys(t *testing.T) {
	db, dsn := emptyDatabase(t)
	if err := pg.Migrate(t.Context(), db, tenants.Migration(), couriers.Migration()); err != nil {
		t.Fatal(err)
	}
	run := func(code int, args ...string) string {
		t.Helper()
		got, out, errOut := command(append(append([]string{"tenant"}, args...), "--database", dsn)...)
		if got != code {
			t.Fatalf("%q: %d %s %s", args, got, out, errOut)
		}
		return out + errOut
	}
	runCourier := func(code int, args ...string) string {
		t.Helper()
		got, out, errOut := command(append(append([]string{"courier"}, args...), "--database", dsn)...)
		if got != code {
			t.Fatalf("%q: %d %s %s", args, got, out, errOut)
		}
		return out + errOut
	}
	asKey := func(out string) (k issued) {
		t.Helper()
		if err := json.Unmarshal([]byte(out), &k); err != nil || k.Key == "" {
			t.Fatalf("%v %s", err, out)
		}
		return k
	}
	if out := run(exitOK, "ls"); !strings.Contains(out, "waybill tenant create NAME") {
		t.Errorf("%s", out)
	}
	first := asKey(run(exitOK, "create", "Mercado Central", "--json"))
	at := first.Tenant.String()
	if out := run(exitOK, "ls"); !strings.Contains(out, at) || !strings.Contains(out, "Mercado Central") {
		t.Errorf("%s", out)
	}
	second := asKey(run(exitOK, "key", "rotate", at, first.KeyID.String(), "--grace", "48h", "--json"))
	asKey(run(exitOK, "key", "issue", at, "--json"))
	if out := run(exitOK, "key", "revoke", at, second.KeyID.String()); !strings.Contains(out, "is revoked") {
		t.Errorf("%s", out)
	}
	out := run(exitOK, "key", "ls", at)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if len(rows) != 4 || !strings.Contains(rows[1], "active") || !strings.Contains(rows[2], "revoked ") ||
		!strings.Contains(rows[3], "ending in ") || !strings.HasPrefix(rows[3], first.KeyID.String()+"  "+first.Key[11:15]+"  merchant") {
		t.Errorf("%s", out)
	}
	for _, k := range []string{first.Key, second.Key} {
		if strings.Contains(out, k[16:]) {
			t.Error("a key is shown again")
		}
	}
	admin := asKey(run(exitOK, "key", "issue", "platform", "--scope", "admin", "--json"))
	if admin.Tenant != tenants.Platform || admin.Scope != tenants.Admin {
		t.Errorf("%+v", admin)
	}
	var rides enrolled
	if out := runCourier(exitOK, "add", "Ana Lima", "--tenant", at, "--vehicle", "BICYCLE", "--json"); json.Unmarshal([]byte(out), &rides) != nil {
		t.Fatal(out)
	}
	ana := rides.ID.String()
	if out := runCourier(exitOK, "ls", at); !strings.Contains(out, ana+"  Ana Lima  BICYCLE  OFFLINE") {
		t.Errorf("%s", out)
	}
	other := asKey(run(exitOK, "create", "Pizzaria", "--json")).Tenant.String()
	if out := runCourier(exitOK, "ls", other); !strings.Contains(out, "waybill courier add NAME --tenant "+other) {
		t.Errorf("%s", out)
	}
	if out := runCourier(exitOK, "add", "Ana Lima", "--id", ana, "--tenant", other); !strings.Contains(out, "/courier#key=wb_") {
		t.Errorf("%s", out)
	}
	if a, b := runCourier(exitOK, "ls", at), runCourier(exitOK, "ls", other); !strings.Contains(a, ana) || !strings.Contains(b, ana) {
		t.Errorf("%s%s", a, b)
	}
	for want, args := range map[string][]string{
		"waybill tenant ls":           {"add", "Rui"},
		"couriers ride for merchants": {"add", "Rui", "--tenant", "platform"},
		"MOTORBIKE, BICYCLE or CAR":   {"add", "Rui", "--tenant", at, "--vehicle", "HORSE"},
		"a courier's id":              {"add", "Rui", "--tenant", at, "--id", "rui"},
	} {
		if out := runCourier(exitUsage, args...); !strings.Contains(out, want) {
			t.Errorf("%q: %s", args, out)
		}
	}
	for want, args := range map[string][]string{
		"waybill tenant create NAME": {"add", "Rui", "--tenant", uuid.NewString()},
		"waybill courier add NAME":   {"add", "Rui", "--tenant", at, "--id", uuid.NewString()},
	} {
		if out := runCourier(exitFailed, args...); !strings.Contains(out, want) {
			t.Errorf("%q: %s", args, out)
		}
	}
	if k := asKey(run(exitOK, "key", "issue", "platform", "--scope", "courier", "--courier", ana, "--json")); k.Courier == nil || k.Courier.String() != ana {
		t.Errorf("%+v", k)
	}
	if out := run(exitOK, "key", "ls", "platform"); !strings.Contains(out, ana) || !strings.Contains(out, "admin") {
		t.Errorf("%s", out)
	}
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{exitUsage, []string{"key", "issue", "nonsense"}, "waybill tenant ls"},
		{exitUsage, []string{"key", "issue", at, "--scope", "root"}, "merchant, courier or admin"},
		{exitUsage, []string{"key", "issue", at, "--scope", "admin"}, "the platform those of scope admin"},
		{exitUsage, []string{"key", "issue", "platform", "--scope", "courier", "--courier", "Ana"}, "a courier's id"},
		{exitUsage, []string{"key", "rotate", at, first.Key}, "not the key itself"},
		{exitUsage, []string{"key", "rotate", at, first.KeyID.String(), "--grace", "721h"}, "30 days"},
		{exitFailed, []string{"key", "rotate", at, second.KeyID.String()}, "waybill tenant key ls"},
		{exitFailed, []string{"key", "revoke", at, uuid.NewString()}, "waybill tenant key ls"},
		{exitFailed, []string{"key", "issue", "platform", "--scope", "courier", "--courier", uuid.NewString()}, "waybill courier add NAME"},
		{exitFailed, []string{"key", "issue", uuid.NewString()}, "waybill tenant create NAME"},
		{exitFailed, []string{"key", "ls", uuid.NewString()}, "waybill tenant create NAME"},
	} {
		if out := run(c.code, c.args...); !strings.Contains(out, c.want) || strings.Contains(out, first.Key) {
			t.Errorf("%q: %s", c.args, out)
		}
	}
}
