package cdc_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/cdc"
)

// A process that tries again makes the slot again, although nobody reads it in
// between.
func TestWhatAProcessTriesToPublishIsNotDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY)")
	var tried atomic.Int64
	c := cdc.New(w.db, func(...kgo.Opt) (*kgo.Client, error) {
		tried.Add(1)
		return nil, errors.New("no broker")
	}, w.registry, w.config(w.table("thing")))
	stop := w.start(c)
	w.eventually("it has tried", func() (bool, any) { return tried.Load() > 1, tried.Load() })
	for range 20 {
		if err := cdc.Drop(t.Context(), w.db, "", ""); !errors.Is(err, cdc.ErrInUse) {
			t.Fatalf("dropped under a process: %v", err)
		}
	}
	stop()
	w.eventually("it is dropped", func() (bool, any) { err := cdc.Drop(context.Background(), w.db, "", ""); return err == nil, err })
	if w.status().Slot.Exists {
		t.Error("the slot is still there")
	}
}
