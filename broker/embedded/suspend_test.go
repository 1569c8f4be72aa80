package embedded

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A producer rides out a suspension: what it had no answer for is there once,
// and nobody is served meanwhile.
func TestASuspendedBrokerServesNobodyAndThenGoesOn(t *testing.T) {
	b := start(t, Config{AllowAutoCreate: true})
	cl, err := b.Client().Client(kgo.AllowAutoTopicCreation(), kgo.ProducerLinger(0))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	send := func() error {
		return cl.ProduceSync(t.Context(), &kgo.Record{Topic: "things", Value: []byte("x")}).FirstErr()
	}
	if err := send(); err != nil {
		t.Fatal(err)
	}
	b.Suspend(true)
	other, err := b.Client().Client()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := other.Ping(short); err == nil {
		t.Error("somebody is served")
	}
	sent := make(chan error, 1)
	go func() { sent <- send() }()
	select {
	case err := <-sent:
		t.Errorf("a record was taken, or given up: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	b.Suspend(false)
	if err := <-sent; err != nil {
		t.Error(err)
	}
	reader, err := b.Client().Client(kgo.ConsumeTopics("things"))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	n := 0
	for n < 2 {
		f := reader.PollFetches(t.Context())
		if err := f.Err(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		n += f.NumRecords()
	}
	if n != 2 {
		t.Errorf("%d records", n)
	}
}
