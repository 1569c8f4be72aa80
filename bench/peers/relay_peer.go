package main

import (
	"context"

	"github.com/waybillhq/waybill/bench/child"
)

// Topics that each peer publishes to, by short name.
const (
	backlogTopic = "backlog"
	latencyTopic = "latency"
)

// peer is one way from a table to a topic. Its events are those of
// relay.Outbox: the same keys and sequences, bodies of the same size, committed
// in the same shape.
type peer interface {
	// name and settings are for the table's reader.
	name() string
	settings() string
	// prepare makes tables and topics.
	prepare(ctx context.Context) error
	// topic is the whole name of one.
	topic(short string) string
	// fill commits events to be published to a topic, and nothing else is.
	fill(ctx context.Context, short string, events int64) error
	// write commits one event, and has committed it when it returns.
	write(short string) func(ctx context.Context, writer int, key string, sequence int64) error
	// start starts the process that publishes.
	start(ctx context.Context, short string) (*child.Process, error)
	// settled tells whether the peer has also noted that so many events are
	// published.
	settled(ctx context.Context, events int64) (bool, error)
}
