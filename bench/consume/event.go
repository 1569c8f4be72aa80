package consume

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// step is the event published: the n-th of its key.
type step struct {
	Account string `avro:"account"`
	N       int64  `avro:"n"`
	Note    []byte `avro:"note"`
}

var contract = event.MustContract(topicName, "/bench",
	`{"type":"record","name":"Step","namespace":"waybill.bench","fields":[{"name":"account","type":"string"},{"name":"n","type":"long"},{"name":"note","type":"bytes"}]}`)

func (step) EventContract() *event.Contract { return contract }
func (s step) EventKey() string             { return s.Account }
func (s step) EventSequence() int64         { return s.N }

// noteBytes makes a body of some 220 bytes.
const noteBytes = 200

// poisoned is the key that fails where one does.
const poisoned = "account-0"

// publish fills the topic: keys in turn, each with its sequence.
func (r *run) publish(ctx context.Context) error {
	cl, err := r.engines.Broker.Client(kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(20_000),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, stop := context.WithCancelCause(event.WithTenant(ctx, "bench"))
	defer stop(nil)
	note := make([]byte, noteBytes)
	for i := range r.cfg.Events {
		rec, err := record(ctx, r.schemaID, step{fmt.Sprint("account-", i%keys), i/keys + 1, note})
		if err != nil {
			return err
		}
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

func record(ctx context.Context, schemaID int, s step) (*kgo.Record, error) {
	body, err := contract.Schema.Encode(s)
	if err != nil {
		return nil, err
	}
	e := contract.Envelope(ctx, s, time.Now())
	rec := &kgo.Record{Topic: topicName, Key: []byte(s.Account)}
	rec.Value = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(schemaID)), body...)
	e.Headers(func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return rec, nil
}
