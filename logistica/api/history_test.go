package api_test

import (
	"net/http"
	"testing"

	"github.com/waybillhq/waybill/logistica/api"
)

func TestAnOrderTellsItsMerchantHowItCameToItsState(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	var o api.Order
	m.ask(t, "POST", "/v1/orders", orderBody).into(t, http.StatusCreated, &o)
	m.ask(t, "POST", "/v1/orders/"+o.ID.String()+"/transitions", `{"to":"CANCELLED","reason":"closed early"}`).into(t, http.StatusOK, &o)
	var read api.Order
	m.ask(t, "GET", "/v1/orders/"+o.ID.String()+"?history=true", "").into(t, http.StatusOK, &read)
	if len(read.History) != 1 || read.State != "CANCELLED" {
		t.Fatalf("%+v", read)
	}
	if c := read.History[0]; c.State != "CANCELLED" || c.Actor != "MERCHANT" || c.Reason != "closed early" || c.At.IsZero() {
		t.Errorf("%+v", c)
	}
}
