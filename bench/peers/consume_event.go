package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/event"
)

// consumeTopic is what both read. It stands in the contract.
const consumeTopic = "waybill.bench.peers"

// step is the event published: the n-th of its key.
type step struct {
	Account string `avro:"account"`
	N       int64  `avro:"n"`
	Note    []byte `avro:"note"`
}

var contract = event.MustContract(consumeTopic, "/bench",
	`{"type":"record","name":"Step","namespace":"waybill.bench.peers","fields":[{"name":"account","type":"string"},{"name":"n","type":"long"},{"name":"note","type":"bytes"}]}`)

func (step) EventContract() *event.Contract { return contract }
func (s step) EventKey() string             { return s.Account }
func (s step) EventSequence() int64         { return s.N }

// Events of so many keys, in turn, with a body of some 220 bytes.
const (
	consumeKeys = 1000
	noteBytes   = 200
)

// insertEffect is what the handlers of both do in their transaction.
const insertEffect = `INSERT INTO effect (account, n) VALUES ($1, $2)`

func publish(ctx context.Context, e *engine.Engines, schemaID int, events int64) error {
	cl, err := e.Broker.Client(kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(20_000),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, stop := context.WithCancelCause(event.WithTenant(ctx, "bench"))
	defer stop(nil)
	note := make([]byte, noteBytes)
	for i := range events {
		s := step{fmt.Sprint("account-", i%consumeKeys), i/consumeKeys + 1, note}
		body, err := contract.Schema.Encode(s)
		if err != nil {
			return err
		}
		rec := &kgo.Record{Topic: consumeTopic, Key: []byte(s.Account)}
		rec.Value = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(schemaID)), body...)
		envelope := contract.Envelope(ctx, s, time.Now())
		envelope.Headers(func(name, value string) {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		})
		cl.Produce(ctx, rec, func(_ *kgo.Record, err error) {
			if err != nil {
				stop(fmt.Errorf("publish: %w", err))
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return context.Cause(ctx)
	}
	return nil
}
