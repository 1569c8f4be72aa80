package consumer

import "context"

// Places bounds how many transactions of several groups are under way at a time.
// Groups of one program take the processors from each other and from whatever
// else it does, and one with much to do takes the most. Who waits for a place
// holds neither a connection nor a lock.
type Places struct{ taken chan struct{} }

// NewPlaces makes n places; below 1 it is 1.
func NewPlaces(n int) *Places { return &Places{make(chan struct{}, max(n, 1))} }

// take waits for a place until ctx ends. Where there are no Places there is
// always one.
func (p *Places) take(ctx context.Context) (give func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	select {
	case p.taken <- struct{}{}:
		return func() { <-p.taken }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
