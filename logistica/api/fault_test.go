package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/pg"
)

// breakable is the API with faults, and who holds an administrator's key.
func breakable(t *testing.T, change ...func(*api.Deps, *api.Config)) (b *bed, admin merchant) {
	t.Helper()
	pool := database(t)
	if err := pg.Migrate(t.Context(), pool, faults.Migration()); err != nil {
		t.Fatal(err)
	}
	b = newBedOn(t, pool, append(change, func(d *api.Deps, _ *api.Config) { d.Faults = faults.New(pool, faults.Config{}) })...)
	return b, b.admin(t)
}

func TestAnAdministratorSetsAndClearsFaults(t *testing.T) {
	t.Parallel()
	_, admin := breakable(t)
	var f api.Fault
	admin.ask(t, "PUT", "/v1/faults/billing-failure", `{"value":30,"for":"5m"}`).into(t, http.StatusOK, &f)
	if f.Name != "billing-failure" || f.Value != 30 || f.Until == nil || f.SetBy != "API key of Platform" {
		t.Errorf("%+v", f)
	}
	admin.ask(t, "PUT", "/v1/faults/poison-event", `{"value":2}`).into(t, http.StatusOK, &f)
	list := func() map[string]api.Fault {
		t.Helper()
		var all struct{ Faults []api.Fault }
		admin.ask(t, "GET", "/v1/faults", "").into(t, http.StatusOK, &all)
		byName := map[string]api.Fault{}
		for _, f := range all.Faults {
			byName[f.Name] = f
		}
		return byName
	}
	all := list()
	if p := all["poison-event"]; len(all) != len(faults.Known()) || p.Value != 2 || p.Left == nil || *p.Left != 2 || p.Until != nil {
		t.Errorf("%+v", all)
	}
	for range 2 { // to clear what is off is no error
		if a := admin.ask(t, "DELETE", "/v1/faults/billing-failure", ""); a.status != http.StatusNoContent || len(a.body) != 0 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if all = list(); all["billing-failure"].Value != 0 || all["poison-event"].Value != 2 {
		t.Errorf("%+v", all)
	}
}

func TestAFaultThatCannotBeSetIsAProblem(t *testing.T) {
	t.Parallel()
	_, admin := breakable(t)
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"PUT", "/v1/faults/biling-failure", `{"value":1}`, http.StatusNotFound, "billing-failure, broker-down"},
		{"DELETE", "/v1/faults/all", "", http.StatusNotFound, "slow-consumer"},
		{"PUT", "/v1/faults/billing-failure", `{"value":101}`, http.StatusUnprocessableEntity, "0 to 100, in percent"},
		{"PUT", "/v1/faults/billing-failure", `{"value":-1}`, http.StatusUnprocessableEntity, "body.value"},
		{"PUT", "/v1/faults/billing-failure", `{"value":1,"for":"soon"}`, http.StatusUnprocessableEntity, "body.for"},
		{"PUT", "/v1/faults/billing-failure", `{"value":1,"for":"9999h"}`, http.StatusUnprocessableEntity, "body.for"},
		{"PUT", "/v1/faults/billing-failure", `{}`, http.StatusUnprocessableEntity, "value"},
	} {
		a := admin.ask(t, c.method, c.path, c.body)
		if a.problem(t, c.status); !strings.Contains(string(a.body), c.want) {
			t.Errorf("%s %s %s: %s", c.method, c.path, c.body, a.body)
		}
	}
}

func TestOnlyTheDemonstrationsMerchantSetsFaults(t *testing.T) {
	t.Parallel()
	b, admin := breakable(t)
	m := b.merchant(t, "Padaria")
	for _, c := range [][2]string{{"GET", "/v1/faults"}, {"PUT", "/v1/faults/broker-down"}, {"DELETE", "/v1/faults/broker-down"}} {
		m.ask(t, c[0], c[1], `{"value":1}`).problem(t, http.StatusForbidden)
		b.ask(t, c[0], c[1], `{"value":1}`).problem(t, http.StatusUnauthorized)
	}
	admin.ask(t, "GET", "/v1/orders", "").problem(t, http.StatusForbidden) // no merchant's key
	its := b.merchant(t, "Pizzaria")
	its.bed = newBedOn(t, b.pool, func(d *api.Deps, c *api.Config) { d.Faults, c.FaultsOf = faults.New(b.pool, faults.Config{}), its.id })
	m.bed = its.bed
	for _, c := range [][2]string{{"GET", "/v1/faults"}, {"PUT", "/v1/faults/broker-down"}, {"DELETE", "/v1/faults/broker-down"}} {
		m.ask(t, c[0], c[1], `{"value":1}`).problem(t, http.StatusForbidden)
	}
	var f api.Fault
	its.ask(t, "PUT", "/v1/faults/broker-down", `{"value":1,"for":"1m"}`).into(t, http.StatusOK, &f)
	if f.Value != 1 {
		t.Errorf("%+v", f)
	}
	newBed(t).merchant(t, "Sushi").ask(t, "GET", "/v1/faults", "").problem(t, http.StatusNotFound) // where there are none
}
