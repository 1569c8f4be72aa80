package cli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/cdc"
	"github.com/waybillhq/waybill/test/proc"
)

// What a merchant does comes out as changes of orders.orders, without the
// customer in them, and can be read again.
func TestChangesOfOrders(t *testing.T) {
	w := proc.Up(t)
	s := func(args ...string) proc.Command {
		return proc.Command{Args: append(args, "--dir", w.Dir), Env: w.Env}
	}
	const orders = 5
	for range orders {
		if status, body, err := w.Request(t.Context(), http.MethodPost, "/v1/orders", proc.Order); err != nil || status != http.StatusCreated {
			t.Fatalf("%d %s %v", status, body, err)
		}
	}
	snapshot := func(claim string, ok func(cdc.SnapshotStatus) bool) (st cdc.Status) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			// Until its first look at the tables there is no status.
			if r := s("cdc", "status", "--json").Run(t); r.Code == 0 {
				if st = parse[cdc.Status](t, r); len(st.Tables) == 1 && ok(st.Tables[0].Snapshot) {
					return st
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("not so: %s: %+v", claim, st)
			}
		}
	}
	// It begins by itself, after the first orders can be served.
	snapshot("the first snapshot is done", func(sn cdc.SnapshotStatus) bool { return sn.Phase == "done" })
	tailed := s("tail", "orders.cdc", "--count", fmt.Sprint(orders)).Run(t)
	check(t, tailed, 0)
	for _, say := range []string{"orders.orders.cdc", "CREATED", "Jardim Paulista"} {
		if !strings.Contains(tailed.Out, say) {
			t.Errorf("no %s in\n%s", say, tailed.Out)
		}
	}
	for _, secret := range []string{"Ana", "90000", "Augusta", "Santos", "01304", "46.6", "queijo", "token"} {
		if strings.Contains(tailed.Out, secret) {
			t.Errorf("%s is in\n%s", secret, tailed.Out)
		}
	}
	check(t, s("cdc", "snapshot", "orders.nothing").Run(t), 1, "orders.orders")
	check(t, s("cdc", "snapshot").Run(t), 2, "TABLE")
	check(t, s("cdc", "snapshot", "orders.orders").Run(t), 0)
	st := snapshot("the one asked for is done", func(sn cdc.SnapshotStatus) bool {
		return sn.Phase == "done" && !sn.Pending && sn.Reason == "it was asked for"
	})
	if tb := st.Tables[0]; !st.Slot.Active || tb.Error != nil || !tb.Before || tb.Snapshot.RowsRead < orders || tb.Snapshot.Deleted != 0 {
		t.Errorf("status %+v", st)
	}
	r := s("cdc", "status").Run(t)
	check(t, r, 0)
	for _, say := range []string{"orders.orders", "orders.cdc", "whole row", "active", "done"} {
		if !strings.Contains(r.Out, say) {
			t.Errorf("no %s in\n%s", say, r.Out)
		}
	}
}
