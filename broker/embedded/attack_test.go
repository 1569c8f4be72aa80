package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waybillhq/waybill/broker"
)

// target is a broker with a topic, a connection to attack it by and a client
// to see whether it still stands. A panic in the broker ends the test binary.
type target struct {
	*Broker
	cl *kgo.Client
}

func newTarget(t testing.TB) *target {
	t.Helper()
	b := start(t, Config{})
	cl := client(t, b)
	err := broker.Declare(t.Context(), cl, b.Capabilities(), broker.Topic{Name: "things", Partitions: 2, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	produce(t, cl, &kgo.Record{Topic: "things", Value: bytes.Repeat([]byte("abc"), 1000)})
	return &target{b, cl}
}

func (tg *target) stands(t testing.TB) {
	t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := req.RequestWith(ctx, tg.cl); err != nil {
		t.Fatalf("the broker no longer answers: %v", err)
	}
}

func (tg *target) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", tg.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// send writes bytes and returns one answer, or nothing if the broker closes
// the connection instead.
func (tg *target) send(t testing.TB, raw []byte) []byte {
	t.Helper()
	c := tg.dial(t)
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute)) // unpacking takes long under the race detector
	_, _ = c.Write(raw)
	head := make([]byte, 4)
	if _, err := io.ReadFull(c, head); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("neither answered nor closed")
		}
		return nil
	}
	rest := make([]byte, binary.BigEndian.Uint32(head))
	if _, err := io.ReadFull(c, rest); err != nil {
		t.Error(err)
	}
	return append(head, rest...)
}

func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// encode is the frame of a request.
func encode(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 7)
}

func TestMalformedFramesEndTheirConnectionOnly(t *testing.T) {
	tg := newTarget(t)
	header := func(key, version int16) []byte {
		b := binary.BigEndian.AppendUint16(nil, uint16(key))
		b = binary.BigEndian.AppendUint16(b, uint16(version))
		b = binary.BigEndian.AppendUint32(b, 1)
		return kbin.AppendNullableString(b, nil)
	}
	for name, raw := range map[string][]byte{
		"unknown key":              framed(header(9999, 0)),
		"negative key":             framed(header(-1, 0)),
		"key of another kind":      framed(header(int16(kmsg.AddPartitionsToTxn), 0)),
		"share group":              framed(header(int16(kmsg.ShareGroupHeartbeat), 1)),
		"too new":                  framed(header(int16(kmsg.Metadata), 99)),
		"too old":                  framed(header(int16(kmsg.Produce), 0)),
		"negative version":         framed(header(int16(kmsg.Metadata), -1)),
		"nothing":                  framed(nil),
		"four gigabytes announced": {0xff, 0xff, 0xff, 0xff, 0, 3, 0, 0},
		"negative size":            {0x80, 0, 0, 0, 0, 3, 0, 0},
		"no body":                  framed(header(int16(kmsg.Fetch), 12)),
		"endless tags":             framed(append(header(int16(kmsg.Metadata), 12), 0xff, 0xff, 0xff, 0xff, 0x0f)),
		"array of two billion":     framed(append(header(int16(kmsg.Metadata), 1), 0x7f, 0xff, 0xff, 0xff)),
	} {
		t.Run(name, func(t *testing.T) {
			if out := tg.send(t, raw); len(out) > 0 {
				t.Errorf("answered %x", out)
			}
			tg.stands(t)
		})
	}
}

// Java's clients open with the newest version they know.
func TestApiVersionsTooNewIsAnsweredWithOurs(t *testing.T) {
	tg := newTarget(t)
	b := binary.BigEndian.AppendUint16(nil, uint16(kmsg.ApiVersions))
	b = binary.BigEndian.AppendUint16(b, 40)
	b = append(b, 0, 0, 0, 9, 0xff, 0xff, 1, 2, 3, 4, 5, 6)
	out := tg.send(t, framed(b))
	if len(out) < 8 || binary.BigEndian.Uint32(out[4:]) != 9 {
		t.Fatalf("answered %x", out)
	}
	var resp kmsg.ApiVersionsResponse // version 0
	if err := resp.ReadFrom(out[8:]); err != nil {
		t.Fatal(err)
	}
	if resp.ErrorCode != kerr.UnsupportedVersion.Code || len(resp.ApiKeys) == 0 {
		t.Errorf("got %+v", resp)
	}
}

func TestJoiningWithoutACommonProtocolIsRefused(t *testing.T) {
	tg := newTarget(t)
	for name, protocols := range map[string][]string{"none": nil, "one twice": {"range", "range"}} {
		for _, version := range []int16{3, 9} {
			req := kmsg.NewPtrJoinGroupRequest()
			req.SetVersion(version)
			req.Group, req.ProtocolType = "readers-"+name, "consumer"
			req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 10_000
			for _, p := range protocols {
				req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: p})
			}
			out := tg.send(t, encode(req))
			resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
			skip := 8
			if resp.IsFlexible() {
				skip++
			}
			if len(out) < skip || resp.ReadFrom(out[skip:]) != nil || resp.ErrorCode != kerr.InconsistentGroupProtocol.Code {
				t.Errorf("%s, version %d: got %x", name, version, out)
			}
			tg.stands(t)
		}
	}
}

func TestBrokerSettingsAreNotAClientsToChange(t *testing.T) {
	tg := newTarget(t)
	zero := "0"
	rs, err := kadm.NewClient(tg.cl).AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: "log.cleaner.backoff.ms", Value: &zero}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(rs) != 1 || !errors.Is(rs[0].Err, kerr.PolicyViolation) {
		t.Errorf("got %+v", rs)
	}
}

// batchOf is a batch with true length and checksum around any records.
func batchOf(codec uint16, count, lastDelta int32, records []byte) []byte {
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		Magic: 2, Attributes: int16(codec), LastOffsetDelta: lastDelta, FirstTimestamp: now, MaxTimestamp: now,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: count, Records: records,
	}
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[batchLength:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[batchCRC:], crc32.Checksum(raw[batchAttributes:], castagnoli))
	return raw
}

func produceRaw(version int16, batch []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(version)
	req.Acks, req.TimeoutMillis = -1, 1000
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = batch
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = "things"
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	return req
}

// listByTime makes the broker read records.
func (tg *target) listByTime(t testing.TB) {
	t.Helper()
	adm := kadm.NewClient(tg.cl)
	_, _ = adm.ListOffsetsAfterMilli(t.Context(), 1, "things")
	_, _ = adm.ListMaxTimestampOffsets(t.Context(), "things")
	tg.stands(t)
}

// packed is so many MiB of zeros. What gzip wrote one after the other unpacks
// to all of it, and one MiB is soon packed.
func packed(t testing.TB, mebibytes int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.CopyN(w, zeroes{}, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.Repeat(out.Bytes(), mebibytes)
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestRecordsThatLieAreRefused(t *testing.T) {
	tg := newTarget(t)
	good := (&kmsg.Record{Length: 8, Key: []byte("k"), Value: []byte("v")}).AppendTo(nil)
	for name, c := range map[string]struct {
		batch []byte
		want  *kerr.Error
	}{
		"longer than they are":  {batchOf(0, 1, 0, append([]byte{0xfe, 0xff, 0x03}, good[1:]...)), kerr.InvalidRecord},
		"of negative length":    {batchOf(0, 1, 0, append([]byte{0x11}, good[1:]...)), kerr.InvalidRecord},
		"fewer than counted":    {batchOf(0, 2, 1, good), kerr.InvalidRecord},
		"more than counted":     {batchOf(0, 1, 0, append(bytes.Clone(good), good...)), kerr.InvalidRecord},
		"none":                  {batchOf(0, 0, -1, nil), kerr.InvalidRecord},
		"a negative count":      {batchOf(0, -5, -6, good), kerr.InvalidRecord},
		"packed badly":          {batchOf(1, 1, 0, good), kerr.InvalidRecord},
		"packed gigabyte":       {batchOf(1, 1, 0, packed(t, 1<<10)), kerr.InvalidRecord},
		"of unknown codec":      {batchOf(7, 1, 0, good), kerr.InvalidRecord},
		"of a transaction":      {batchOf(attrTransactional, 1, 0, good), kerr.InvalidTxnState},
		"with a wrong checksum": {append(batchOf(0, 1, 0, good[:len(good)-1]), 9), kerr.CorruptMessage},
		"cut short":             {batchOf(0, 1, 0, good)[:30], kerr.CorruptMessage},
		"absent":                {nil, kerr.CorruptMessage},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []int16{3, 9, 12} {
				req := produceRaw(version, c.batch)
				out := tg.send(t, encode(req))
				resp := req.ResponseKind().(*kmsg.ProduceResponse)
				skip := 8
				if resp.IsFlexible() {
					skip++
				}
				if len(out) < skip {
					t.Fatalf("version %d: no answer", version)
				}
				if err := resp.ReadFrom(out[skip:]); err != nil {
					t.Fatal(err)
				}
				if got := kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode); !errors.Is(got, c.want) {
					t.Errorf("version %d: got %v, want %v", version, got, c.want)
				}
			}
			tg.listByTime(t)
		})
	}
}

func TestProducersWaitWhileTheDiskIsFull(t *testing.T) {
	tg := newTarget(t)
	var free atomic.Int64
	free.Store(reserve)
	tg.guard.guard.disk.free = func() (int64, error) { return free.Load(), nil }
	tg.guard.guard.disk.left = 0
	resp := new(kmsg.ProduceResponse)
	resp.SetVersion(7)
	req := produceRaw(7, batchOf(0, 1, 0, (&kmsg.Record{Length: 8, Key: []byte("k"), Value: []byte("v")}).AppendTo(nil)))
	for want, space := range map[*kerr.Error]int64{kerr.KafkaStorageError: reserve, nil: 1 << 30} {
		free.Store(space)
		if err := resp.ReadFrom(tg.send(t, encode(req))[8:]); err != nil {
			t.Fatal(err)
		}
		got := resp.Topics[0].Partitions[0].ErrorCode
		if want != nil && got != want.Code || want == nil && got != 0 {
			t.Errorf("%d bytes free: got %v", space, kerr.ErrorForCode(got))
		}
		tg.guard.guard.disk.left = 0
	}
}

func TestRecordFromNextYearIsRefused(t *testing.T) {
	tg := newTarget(t)
	r := &kgo.Record{Topic: "things", Value: []byte("v"), Timestamp: time.Now().AddDate(1, 0, 0)}
	if err := tg.cl.ProduceSync(t.Context(), r).FirstErr(); !errors.Is(err, kerr.InvalidTimestamp) {
		t.Errorf("got %v", err)
	}
}

// Answers are matched by their order, so one of the guard's own must not
// overtake the broker's.
func TestRefusalsKeepTheirPlaceInThePipeline(t *testing.T) {
	tg := newTarget(t)
	c := tg.dial(t)
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	var raw []byte
	f := kmsg.NewRequestFormatter()
	const n = 50
	for i := range int32(n) {
		var req kmsg.Request = kmsg.NewPtrMetadataRequest()
		if i%2 == 1 {
			tx := kmsg.NewPtrInitProducerIDRequest()
			tx.TransactionalID = kmsg.StringPtr("tx")
			req = tx
		}
		req.SetVersion(4)
		raw = append(raw, f.AppendRequest(nil, req, i)...)
	}
	if _, err := c.Write(raw); err != nil {
		t.Fatal(err)
	}
	for i := range uint32(n) {
		var head [8]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint32(head[4:]); got != i {
			t.Fatalf("answer %d came in place %d", got, i)
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head[:]))-4); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusalsAreLoggedOnceInAWhile(t *testing.T) {
	var out bytes.Buffer
	b := start(t, Config{Logger: testLogger(&out)})
	tg := &target{b, client(t, b)}
	for range 50 {
		tg.send(t, framed([]byte("nonsense nonsense")))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "closed a connection"); n != 1 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
