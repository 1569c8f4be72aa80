package consumer

import (
	"context"
	"time"
)

// Places bounds how many transactions of several groups are under way at a time.
// Groups of one program take the processors from each other and from whatever
// else it does, and one with much to do takes the most. Who waits for a place
// holds neither a connection nor a lock, and goes all the same after a second:
// the place may be held by a handler that waits for something else, which is no
// reason for other groups to stand still.
type Places struct {
	taken chan struct{}
	wait  time.Duration
}

// NewPlaces makes n places; below 1 it is 1.
func NewPlaces(n int) *Places { return &Places{make(chan struct{}, max(n, 1)), placeWait} }

// placeWait is how long a transaction waits for its place.
const placeWait = time.Second

// take waits for a place, and fails when ctx ends. Where there are no Places there is
// always one.
func (p *Places) take(ctx context.Context) (give func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	t := time.NewTimer(p.wait)
	defer t.Stop()
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken }, nil
	case <-t.C:
		return func() {}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
