package consume

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

const insertEffect = `INSERT INTO effect (account, n) VALUES ($1, $2)`

// limitEvents bounds what a transaction an event is measured over: it is slow,
// and steady.
const limitEvents = 20_000

// limitTx is a transaction an event with the effect and nothing else.
func (r *run) limitTx(ctx context.Context) error {
	n := min(r.cfg.Events, limitEvents)
	perSecond, err := sideBySide(ctx, n, 1, func(ctx context.Context, from, _ int64) error {
		return pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insertEffect, account(from), from)
			return err
		})
	})
	r.res.Tx = perSecond
	return err
}

// copyRows is the rows of one COPY, and of a set.
const copyRows = 1000

func (r *run) limitCopy(ctx context.Context) error {
	perSecond, err := sideBySide(ctx, r.cfg.Events, copyRows, func(ctx context.Context, from, n int64) error {
		_, err := r.db.CopyFrom(ctx, pgx.Identifier{"effect"}, []string{"account", "n"},
			pgx.CopyFromSlice(int(n), func(i int) ([]any, error) { return []any{account(from + int64(i)), from + int64(i)}, nil }))
		return err
	})
	r.res.Copy = perSecond
	return err
}

func account(i int64) string { return fmt.Sprint("account-", i%keys) }

// sideBySide has all connections write total events, some at a time.
func sideBySide(ctx context.Context, total, atOnce int64, write func(ctx context.Context, from, n int64) error) (perSecond float64, err error) {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range connections {
		g.Go(func() error {
			for from := next.Add(atOnce) - atOnce; from < total; from = next.Add(atOnce) - atOnce {
				if err := write(ctx, from, min(atOnce, total-from)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = g.Wait()
	return float64(total) / time.Since(began).Seconds(), err
}
