package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waybillhq/waybill/broker"
)

// childFiles is how large files of the child may get, in bytes.
const childFiles = "WAYBILL_TEST_BROKER_FILES"

// A client whose write failed may not have heard of it, and sends the batch again.
// The broker's log takes that for a copy of what it has. It must not say so.
func TestAWriteThatFailedIsNeverAcknowledged(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files cannot be limited here")
	}
	dir := t.TempDir()
	c := spawn(t, dir, "127.0.0.1:0")
	cl := clientOf(t, c)
	if err := broker.Declare(t.Context(), cl, broker.Capabilities{}, broker.Topic{Name: "things", Partitions: 1, Retention: broker.Unlimited}); err != nil {
		t.Fatal(err)
	}
	c.kill()
	t.Setenv(childFiles, "200000")
	c = spawn(t, dir, c.addr)
	p := &idempotent{t: t, addr: c.addr}
	p.begin()
	var acked []int32
	seq := int32(0)
	for ; ; seq++ {
		if seq > 100 {
			t.Fatal("no write failed")
		}
		if p.produce(seq) != nil {
			break
		}
		acked = append(acked, seq)
	}
	for range 5 {
		if p.produce(seq) == nil {
			t.Errorf("batch %d was acknowledged after its write had failed", seq)
		}
	}
	if err := p.produce(seq + 1); err == nil {
		t.Errorf("batch %d was acknowledged by a broker that cannot write", seq+1)
	}
	if code := c.ended(t); code != exitFailed {
		t.Errorf("the broker's process ended with %d, want %d", code, exitFailed)
	}

	t.Setenv(childFiles, "")
	c = spawn(t, dir, c.addr)
	for ; len(acked) < 40; seq++ { // goes on where it was
		if err := p.produce(seq); err != nil {
			t.Fatalf("batch %d after the restart: %v", seq, err)
		}
		acked = append(acked, seq)
	}
	if got := sequencesOf(t, c, len(acked)); !slices.Equal(got, acked) {
		t.Errorf("the log has %v\nacknowledged were %v", got, acked)
	}
}

const exitFailed = 3 // of the child, when its broker could not write

// ended tells the process to go and waits until it has.
func (c *child) ended(t *testing.T) int {
	t.Helper()
	_ = c.in.Close()
	end := make(chan error, 1) // with room: nobody may be waiting any more
	go func() { end <- c.cmd.Wait() }()
	select {
	case err := <-end:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		return 0
	case <-time.After(2 * time.Minute):
		t.Error("the broker goes on though it cannot write")
		c.kill()
		return -1
	}
}

func clientOf(t *testing.T, c *child) *kgo.Client {
	t.Helper()
	cl, err := broker.Config{Brokers: []string{c.addr}, Logger: quiet}.Client(
		kgo.ConsumeTopics("things"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// sequencesOf reads n records, and what may come behind them.
func sequencesOf(t *testing.T, c *child, n int) (got []int32) {
	t.Helper()
	cl := clientOf(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for len(got) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Errorf("%d of %d records read: %v", len(got), n, err)
			return got
		}
		fetches.EachRecord(func(r *kgo.Record) {
			key, err := strconv.Atoi(string(r.Key))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, int32(key))
		})
	}
	return got
}

// idempotent is a producer in raw requests, each on a connection of its own.
type idempotent struct {
	t     *testing.T
	addr  string
	id    int64
	epoch int16
}

func (p *idempotent) begin() {
	p.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.SetVersion(1)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	if err := p.ask(req, resp); err != nil {
		p.t.Fatal(err)
	}
	p.id, p.epoch = resp.ProducerID, resp.ProducerEpoch
}

// produce sends a batch of one record of 10 kB.
func (p *idempotent) produce(seq int32) error {
	rec := kmsg.Record{Key: []byte(strconv.Itoa(int(seq))), Value: []byte(strings.Repeat("x", 10_000))}
	rec.Length = int32(len(rec.AppendTo(nil)) - 1)
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		Magic: 2, FirstTimestamp: now, MaxTimestamp: now, ProducerID: p.id, ProducerEpoch: p.epoch,
		FirstSequence: seq, NumRecords: 1, Records: rec.AppendTo(nil),
	}
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[batchLength:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[batchCRC:], crc32.Checksum(raw[batchAttributes:], castagnoli))
	req := produceRaw(7, raw)
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	if err := p.ask(req, resp); err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

func (p *idempotent) ask(req kmsg.Request, resp kmsg.Response) error {
	c, err := (&net.Dialer{}).DialContext(p.t.Context(), "tcp", p.addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := c.Write(encode(req)); err != nil {
		return err
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(c, head); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(head))
	if _, err := io.ReadFull(c, body); err != nil {
		return err
	}
	return resp.ReadFrom(body[4:])
}
