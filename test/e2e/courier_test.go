package e2e

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/test/proc"
)

// courier enrols somebody who rides for the demonstration's merchant.
func courier(t *testing.T, w *proc.Waybill) (key string) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), w.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	fleet := couriers.New(pool, outbox.New(contracts.All(), outbox.Config{}), couriers.Config{})
	key, err = fleet.Enroll(t.Context(), tenants.New(pool, tenants.Config{}), couriers.Enrolment{
		ID: uuid.New(), Name: "Davi Moreira", Vehicle: "MOTORBIKE", Tenants: []uuid.UUID{proc.DemoTenant},
	})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestCourierTakesAnOrderFromItsCreationToTheDoor(t *testing.T) {
	w := proc.Up(t)
	key := courier(t, w)
	page := browser.New(t)
	browser.As(page, t, browser.Look{Width: 390, Height: 844, Locale: "en-US", Zone: "America/Sao_Paulo"})
	browser.Open(page, t, w.HTTP+"/courier#key="+key)
	live(page, t)
	browser.Click(page, t, `.duty button[data-to="AVAILABLE"]`)
	browser.Until[bool](page, t, `document.querySelector('[data-duty="AVAILABLE"]') !== null`)
	o := create(t, w)
	step(page, t, "ASSIGNED")
	for _, to := range walk[2:7] {
		browser.Click(page, t, `.job button[data-to="`+to+`"]`)
		step(page, t, to)
	}
	var tracked struct {
		Code string `json:"delivery_code"`
	}
	ask(t, w, "", http.MethodGet, "/v1/track/"+o.Token, "", http.StatusOK, &tracked)
	browser.Click(page, t, ".code input")
	browser.Press(page, t, tracked.Code)
	browser.Click(page, t, `.job button[data-to="DELIVERED"]`)
	browser.Until[bool](page, t, `document.querySelector(".job") === null`)
	if now := read(t, w, o.ID); now.State != "DELIVERED" {
		t.Errorf("in Postgres: %+v", now)
	}
	browser.Until[bool](page, t, `document.querySelector('[data-duty="AVAILABLE"]') !== null`) // free for the next
}

// step waits until the page shows the order in a state, with nothing under way.
func step(page context.Context, t *testing.T, state string) {
	t.Helper()
	browser.Until[bool](page, t, `document.querySelector('.job[data-state="`+state+`"] .chip:not(.is-pending)') !== null`)
}
