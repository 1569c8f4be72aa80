package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/bench/child"
)

// alternate has each of n do its round, rounds times. Every second round goes
// backwards: none is always the one that finds the machine warm.
func alternate(rounds, n int, do func(round, i int) error) error {
	for round := range rounds {
		for i := range n {
			if round%2 == 1 {
				i = n - 1 - i
			}
			if err := do(round, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// median of some figures; of an even number, the mean of the two in the middle.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(of))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// medianKnown is of those that are known, nil if none is.
func medianKnown(of []*float64) *float64 {
	var known []float64
	for _, v := range of {
		if v != nil {
			known = append(known, *v)
		}
	}
	if len(known) == 0 {
		return nil
	}
	m := median(known)
	return &m
}

// serverCPU reads the processor time that Postgres has taken, all its processes
// together; nil where that is not to be known.
func serverCPU(ctx context.Context, db *pgxpool.Pool) (*float64, error) {
	var backend int
	if err := db.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return nil, err
	}
	server, ok := child.ParentOf(backend)
	if !ok {
		return nil, nil //nolint:nilnil // unknown is no fault
	}
	cpu, ok := child.FamilyCPU(server)
	if !ok {
		return nil, nil //nolint:nilnil // as above
	}
	return &cpu, nil
}

// perMillion is the processor seconds between two readings, for a million of n.
func perMillion(before, after *float64, n int64) *float64 {
	if before == nil || after == nil || n == 0 {
		return nil
	}
	v := (*after - *before) / float64(n) * 1e6
	return &v
}

// within does a step in bounded time, and tells which one failed.
func within(ctx context.Context, limit time.Duration, name string, step func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := step(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.New("interrupted; what was started is stopped and removed")
	case bounded.Err() != nil:
		return fmt.Errorf("%s: not done after %s (%w)", name, limit, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
