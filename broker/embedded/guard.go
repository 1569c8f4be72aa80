package embedded

import (
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// verdict is what becomes of a request. Exactly one of the first two is set;
// neither means that the connection is closed.
type verdict struct {
	pass   []byte        // handed to the broker
	answer kmsg.Response // sent back instead
	reason string        // why it was not passed on
	silent bool          // the broker will send no answer (acks=0)
	joins  *membership   // who joins a group by it
}

func refuse(format string, args ...any) verdict {
	return verdict{reason: fmt.Sprintf(format, args...)}
}

func answer(resp kmsg.Response, format string, args ...any) verdict {
	return verdict{answer: resp, reason: fmt.Sprintf(format, args...)}
}

// guard reads every request before the broker does. The broker's own loop
// trusts its input: a panic in it would end the program.
type guard struct {
	cfg        Config
	autoCreate func(topic string) error // nil: clients may not create topics by asking for them
	inflate    chan struct{}            // bounds how many batches are unpacked at once
	disk       disk
	partitions atomic.Int64 // of all topics, as last counted
}

func newGuard(cfg Config) *guard {
	return &guard{cfg: cfg, inflate: make(chan struct{}, 4), disk: disk{free: freeSpace(cfg.Dir)}}
}

// judge may change the request in place.
func (g *guard) judge(raw []byte) verdict {
	f, err := parseFrame(raw)
	if err != nil {
		return refuse("%v", err)
	}
	if f.body == nil && f.key == int16(kmsg.ApiVersions) {
		return verdict{pass: f.tooNew()}
	}
	if f.key == int16(kmsg.Produce) {
		return g.judgeProduce(&f)
	}
	if len(raw) > maxSmall {
		return refuse("%s of %d bytes", kmsg.NameForKey(f.key), len(raw))
	}
	req, err := f.parse()
	if err != nil {
		return refuse("%v", err)
	}
	return g.judgeRequest(&f, req)
}

func (g *guard) judgeRequest(f *frame, req kmsg.Request) verdict {
	switch r := req.(type) {
	case *kmsg.FetchRequest:
		return clampFetch(f, r)
	case *kmsg.InitProducerIDRequest:
		return judgeProducerID(f, r)
	case *kmsg.JoinGroupRequest:
		return judgeJoin(f, r)
	case *kmsg.OffsetCommitRequest:
		return judgeCommit(f, r)
	case *kmsg.CreateTopicsRequest:
		return g.judgeCreateTopics(f, r)
	case *kmsg.CreatePartitionsRequest:
		return g.judgeCreatePartitions(f, r)
	case *kmsg.IncrementalAlterConfigsRequest:
		return judgeAlterConfigs(f, r)
	case *kmsg.MetadataRequest:
		return g.judgeMetadata(f, r)
	default:
		return verdict{pass: f.raw}
	}
}
