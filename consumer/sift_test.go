package consumer

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// What nobody wants costs no transaction, and who begins to want it gets all that
// is written from then on.
func TestEventsOfTenantsThatNobodyWantsArePassedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var mu sync.Mutex
	want, away := map[string]bool{}, false
	w.start(keep, func(s *setup) {
		s.cfg.Tenants = func(_ context.Context, of []string) (map[string]bool, error) {
			mu.Lock()
			defer mu.Unlock()
			wanted := map[string]bool{}
			for _, x := range of {
				wanted[x] = want[x]
			}
			if away {
				return nil, errors.New("the database is away")
			}
			return wanted, nil
		}
	})
	w.move("a", "b", "a")
	w.until("all are passed", func() bool { return w.next() == 3 })
	if n := w.number(`SELECT count(*) FROM waybill.inbox WHERE group_name = $1`, w.group); n != 0 {
		t.Errorf("%d claims were made for what nobody wants", n)
	}
	mu.Lock()
	want["tenant-of-b"] = true
	mu.Unlock()
	w.move("b", "a", "b")
	w.until("those of b are handled", func() bool { return w.number(`SELECT count(*) FROM effect WHERE key = 'b'`) == 2 && w.next() == 6 })
	mu.Lock()
	away = true
	mu.Unlock()
	w.move("a")
	w.until("where it is not known, it is handled", func() bool { return w.number(`SELECT count(*) FROM effect`) == 3 })
}

func TestAnyTypeComesInSets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var mu sync.Mutex
	most := 0
	w.many(500, 50)
	w.start(nil, func(s *setup) {
		s.cfg.Workers = 1
		s.handlers = func(g *Group, c *event.Contract) {
			OnAnyBatch(g, c.Topic, Filter{}, func(ctx context.Context, tx pgx.Tx, rs []Raw) error {
				mu.Lock()
				most = max(most, len(rs))
				mu.Unlock()
				for _, r := range rs {
					if _, err := tx.Exec(ctx, `INSERT INTO effect (key, n) VALUES ($1, $2)`, string(r.Key), r.Sequence); err != nil {
						return err
					}
				}
				return nil
			})
		}
	})
	w.settled()
	mu.Lock()
	defer mu.Unlock()
	if most < 2 {
		t.Errorf("the largest set has %d", most)
	}
}
