package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/broker"
)

func TestTakenPortIsRecognised(t *testing.T) {
	b := start(t, Config{})
	_, err := Start(t.Context(), Config{Dir: t.TempDir(), Listen: b.Addr(), Logger: quiet})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), b.Addr()) {
		t.Fatalf("got %v", err)
	}
}

func TestLogIsOpenOnce(t *testing.T) {
	dir := t.TempDir()
	start(t, Config{Dir: dir})
	if _, err := Start(t.Context(), Config{Dir: dir, Listen: "127.0.0.1:0", Logger: quiet}); !errors.Is(err, ErrInUse) {
		t.Fatalf("got %v", err)
	}
}

func TestAllInterfacesNeedAnAddressToAdvertise(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		if _, err := Start(t.Context(), Config{Dir: t.TempDir(), Listen: listen, Logger: quiet}); err == nil || !strings.Contains(err.Error(), "advertise") {
			t.Errorf("%s: got %v", listen, err)
		}
	}
}

func TestMetadataTellsTheAdvertisedAddress(t *testing.T) {
	b := start(t, Config{Advertise: "broker.example:1234"})
	if b.Addr() != "broker.example:1234" {
		t.Errorf("Addr = %s", b.Addr())
	}
	real := b.guard.Listener.Addr().String()
	cl, err := (broker.Config{Brokers: []string{real}, Logger: quiet}).Client(kgo.Dialer(
		func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", real)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	meta, err := kadm.NewClient(cl).BrokerMetadata(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(meta.Brokers) != 1 || meta.Brokers[0].Host != "broker.example" || meta.Brokers[0].Port != 1234 || meta.Cluster != clusterID {
		t.Errorf("got %+v", meta)
	}
}

func TestNothingKeepsRunningAfterClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	b, err := Start(t.Context(), Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	cl, err := b.Client().Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	idle, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	cl.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal("second close:", err)
	}
}

func TestOnlyServedRequestsAreAnnounced(t *testing.T) {
	b := start(t, Config{})
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), client(t, b))
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.ApiKeys) != len(served) {
		t.Errorf("%d announced, %d served", len(resp.ApiKeys), len(served))
	}
	for _, k := range resp.ApiKeys {
		if s, ok := served[k.ApiKey]; !ok || s != (span{k.MinVersion, k.MaxVersion}) {
			t.Errorf("%s: announced %d to %d, served %v", kmsg.NameForKey(k.ApiKey), k.MinVersion, k.MaxVersion, s)
		}
	}
}

func TestTransactionsAreRefusedInWords(t *testing.T) {
	b := start(t, Config{})
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID = kmsg.StringPtr("tx")
	req.TransactionTimeoutMillis = 1000
	kresp, err := client(t, b).Broker(0).Request(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(kresp.(*kmsg.InitProducerIDResponse).ErrorCode); !errors.Is(err, kerr.UnsupportedVersion) {
		t.Errorf("got %v", err)
	}
	tx := client(t, b, kgo.TransactionalID("tx"))
	if err := tx.BeginTransaction(); err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = tx.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr()
		if err == nil || ctx.Err() != nil {
			t.Errorf("produced in a transaction: %v, %v", err, ctx.Err())
		}
	}
}

func TestHarmfulTopicsAreRefusedWithTheReason(t *testing.T) {
	b := start(t, Config{})
	adm := kadm.NewClient(client(t, b))
	for name, c := range map[string]struct {
		partitions int32
		configs    map[string]*string
		topic      string
		want       *kerr.Error
	}{
		"compaction":      {1, map[string]*string{"cleanup.policy": kmsg.StringPtr("compact")}, "a", kerr.PolicyViolation},
		"both":            {1, map[string]*string{"cleanup.policy": kmsg.StringPtr("compact,delete")}, "a", kerr.PolicyViolation},
		"partitions":      {1 << 30, nil, "a", kerr.InvalidPartitions},
		"retention words": {1, map[string]*string{"retention.ms": kmsg.StringPtr("week")}, "a", kerr.InvalidConfig},
		"tiny segments":   {1, map[string]*string{"segment.bytes": kmsg.StringPtr("1")}, "a", kerr.InvalidConfig},
		"a path":          {1, nil, "../../etc", kerr.InvalidTopicException},
		"no name":         {1, nil, "", kerr.InvalidTopicException},
	} {
		t.Run(name, func(t *testing.T) {
			rs, err := adm.CreateTopics(t.Context(), c.partitions, -1, c.configs, c.topic)
			if err != nil {
				t.Fatal(err)
			}
			if r := rs[c.topic]; !errors.Is(r.Err, c.want) || r.ErrMessage == "" {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestCompactTopicsAreKeptForEverInstead(t *testing.T) {
	b := start(t, Config{})
	cl := client(t, b)
	if err := broker.Declare(t.Context(), cl, b.Capabilities(), broker.Topic{Name: "state", Partitions: 1, Compact: true}); err != nil {
		t.Fatal(err)
	}
	infos, err := broker.ListTopics(t.Context(), cl, "state")
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := infos[0].Retention(); infos[0].Cleanup != "delete" || !ok || d != broker.Unlimited {
		t.Errorf("got %+v", infos[0])
	}
}

func TestTopicsAppearOnlyWhenAllowed(t *testing.T) {
	for _, allow := range []bool{false, true} {
		t.Run(fmt.Sprint(allow), func(t *testing.T) {
			dir := t.TempDir()
			b := start(t, Config{Dir: dir, AllowAutoCreate: allow})
			cl := client(t, b, kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(1))
			err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "new", Value: []byte("v")}).FirstErr()
			if (err == nil) != allow {
				t.Fatalf("produce: %v", err)
			}
		})
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	b := start(t, Config{MaxConnections: 3})
	closed := make(chan struct{}, 6)
	for range 6 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		go func() {
			_, _ = c.Read(make([]byte, 1)) // the broker says nothing of itself
			closed <- struct{}{}
		}()
	}
	for n := range 3 {
		select {
		case <-closed:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%d of 6 connections were closed", n)
		}
	}
}
