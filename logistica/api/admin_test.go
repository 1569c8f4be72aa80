package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/api"
	"github.com/waybillhq/waybill/logistica/tenants"
)

type keyList struct {
	Keys []api.APIKey
	Next string `json:"next_cursor"`
}

func TestAnAdministratorKeepsMerchantsAndTheirKeys(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	admin := b.admin(t)
	var made api.Merchant
	admin.ask(t, "POST", "/v1/admin/tenants", `{"name":"Mercado Central"}`).into(t, http.StatusCreated, &made)
	b.merchant(t, "Padaria")
	var list struct {
		Tenants []api.Merchant
		Next    string `json:"next_cursor"`
	}
	admin.ask(t, "GET", "/v1/admin/tenants?limit=1", "").into(t, http.StatusOK, &list)
	if len(list.Tenants) != 1 || list.Tenants[0].Name != "Padaria" || list.Next == "" {
		t.Fatalf("%+v", list)
	}
	admin.ask(t, "GET", "/v1/admin/tenants?cursor="+list.Next, "").into(t, http.StatusOK, &list)
	if len(list.Tenants) != 1 || list.Tenants[0].ID != made.ID || list.Tenants[0].CreatedAt == nil {
		t.Errorf("%+v", list) // the platform is none of them
	}
	keys := "/v1/admin/tenants/" + made.ID.String() + "/keys"
	var first, second api.NewAPIKey
	admin.ask(t, "POST", keys, `{"scope":"merchant"}`).into(t, http.StatusCreated, &first)
	me := func(key string) answer { return b.ask(t, "GET", "/v1/me", "", "Authorization", "Bearer "+key) }
	if a := me(first.Key); a.status != http.StatusOK || !strings.Contains(string(a.body), "Mercado Central") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	admin.ask(t, "POST", keys+"/"+first.ID.String()+"/rotate", `{"grace":"1h"}`).into(t, http.StatusCreated, &second)
	if me(first.Key).status != http.StatusOK || me(second.Key).status != http.StatusOK {
		t.Error("the keys do not overlap")
	}
	var shown keyList
	a := admin.ask(t, "GET", keys, "")
	a.into(t, http.StatusOK, &shown)
	if len(shown.Keys) != 2 || shown.Keys[0].State != "active" || shown.Keys[1].State != "ending" || shown.Keys[1].EndsAt == nil ||
		!strings.Contains(first.Key, shown.Keys[1].Hint+"_") || len(shown.Keys[1].Hint) != 4 {
		t.Errorf("%s", a.body)
	}
	for _, secret := range []string{first.Key, second.Key} {
		if _, text, _ := strings.Cut(secret[3:], "_"); strings.Contains(string(a.body), text) {
			t.Error("a key is shown again")
		}
	}
	for range 2 {
		if a := admin.ask(t, "DELETE", keys+"/"+second.ID.String(), ""); a.status != http.StatusNoContent {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	me(second.Key).problem(t, http.StatusUnauthorized)
}

func TestAMerchantRotatesItsOwnKey(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	m := b.merchant(t, "Padaria")
	var k api.NewAPIKey
	m.ask(t, "POST", "/v1/keys/"+m.keyID.String()+"/rotate", "").into(t, http.StatusCreated, &k)
	var list keyList
	m.ask(t, "GET", "/v1/keys?limit=1", "").into(t, http.StatusOK, &list)
	if len(list.Keys) != 1 || list.Keys[0].ID != k.ID || list.Next == "" {
		t.Errorf("%+v", list)
	}
	m.ask(t, "GET", "/v1/keys?cursor="+list.Next, "").into(t, http.StatusOK, &list)
	if len(list.Keys) != 1 || list.Keys[0].ID != m.keyID || list.Keys[0].State != "ending" {
		t.Errorf("%+v", list)
	}
	old := m
	m.key = k.Key
	var last api.NewAPIKey
	m.ask(t, "POST", "/v1/keys/"+m.keyID.String()+"/rotate", `{"grace":"0s"}`).into(t, http.StatusCreated, &last)
	old.ask(t, "GET", "/v1/me", "").problem(t, http.StatusUnauthorized)
}

func TestAKeyThatCannotBeIsAProblem(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	admin, m := b.admin(t), b.merchant(t, "Padaria")
	ours, platform := "/v1/admin/tenants/"+m.id.String()+"/keys", "/v1/admin/tenants/"+tenants.Platform.String()+"/keys"
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{ours, `{"scope":"admin"}`, 422, "the platform those of scope admin"},
		{ours, `{"scope":"courier","courier":"` + uuid.NewString() + `"}`, 422, "with a courier"},
		{ours, `{"scope":"root"}`, 422, "body.scope"},
		{ours, `{"scope":"merchant","courier":"x"}`, 422, "body.courier"},
		{platform, `{"scope":"merchant"}`, 422, "A merchant has keys"},
		{platform, `{"scope":"courier"}`, 422, "with a courier"},
		{"/v1/admin/tenants/" + uuid.NewString() + "/keys", `{"scope":"merchant"}`, 404, "nothing here"},
		{"/v1/admin/tenants/x/keys", `{"scope":"merchant"}`, 404, "nothing here"},
		{ours + "/" + uuid.NewString() + "/rotate", "", 404, "nothing here"},
		{ours + "/" + m.keyID.String() + "/rotate", `{"grace":"soon"}`, 422, "body.grace"},
		{ours + "/" + m.keyID.String() + "/rotate", `{"grace":"721h"}`, 422, "30 days"},
		{"/v1/admin/tenants", `{"name":" "}`, 422, "body.name"},
	} {
		a := admin.ask(t, "POST", c.path, c.body)
		if a.problem(t, c.status); !strings.Contains(string(a.body), c.want) {
			t.Errorf("%s %s: %s", c.path, c.body, a.body)
		}
	}
	admin.ask(t, "DELETE", ours+"/"+uuid.NewString(), "").problem(t, http.StatusNotFound)
	m.ask(t, "GET", ours, "").problem(t, http.StatusForbidden)
	admin.ask(t, "GET", "/v1/keys", "").problem(t, http.StatusForbidden)
}
