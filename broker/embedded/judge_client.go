package embedded

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	maxFetchBytes    = 64 << 20
	maxFetchWait     = 60_000 // ms
	maxCommitMeta    = 4096   // bytes, as Kafka's offset.metadata.max.bytes
	maxGroupProtocol = 64
)

// clampFetch bounds what one fetch may ask for, in place: an answer is built
// in memory, and a waiting fetch stays in memory after its client has gone.
func clampFetch(f *frame, r *kmsg.FetchRequest) verdict {
	at := f.body
	if f.version <= 14 {
		at = at[4:] // replica id
	}
	if r.MaxWaitMillis > maxFetchWait {
		binary.BigEndian.PutUint32(at, maxFetchWait)
	}
	if r.MaxBytes > maxFetchBytes {
		binary.BigEndian.PutUint32(at[8:], maxFetchBytes)
	}
	return verdict{pass: f.raw}
}

// Idempotence needs a producer id and is offered; a transactional id asks for
// what a kill would break.
func judgeProducerID(f *frame, r *kmsg.InitProducerIDRequest) verdict {
	if r.TransactionalID == nil {
		return verdict{pass: f.raw}
	}
	resp := r.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	return answer(resp, "transactions are not offered")
}

// A member that names no protocol, or one twice, leaves the group without one
// that all members share, which its coordinator takes for impossible.
func judgeJoin(f *frame, r *kmsg.JoinGroupRequest) verdict {
	seen := make(map[string]bool, len(r.Protocols))
	for _, p := range r.Protocols {
		seen[p.Name] = true
	}
	if len(r.Protocols) > 0 && len(r.Protocols) <= maxGroupProtocol && len(seen) == len(r.Protocols) {
		return verdict{pass: f.raw, joins: &membership{r.Group, r.MemberID}}
	}
	resp := r.ResponseKind().(*kmsg.JoinGroupResponse)
	resp.ErrorCode = kerr.InconsistentGroupProtocol.Code
	resp.Generation = -1
	resp.MemberID = r.MemberID
	return answer(resp, "join of group %q with %d protocols, %d of them different", clip(r.Group), len(r.Protocols), len(seen))
}

// Commits stay in memory for ever, and so does the note a client adds.
func judgeCommit(f *frame, r *kmsg.OffsetCommitRequest) verdict {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if p.Metadata != nil && len(*p.Metadata) > maxCommitMeta {
				return answer(refusedCommit(r), "commit of group %q with %d bytes of metadata", clip(r.Group), len(*p.Metadata))
			}
		}
	}
	return verdict{pass: f.raw}
}

func refusedCommit(r *kmsg.OffsetCommitRequest) *kmsg.OffsetCommitResponse {
	resp := r.ResponseKind().(*kmsg.OffsetCommitResponse)
	for _, t := range r.Topics {
		rt := kmsg.NewOffsetCommitResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetCommitResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, kerr.OffsetMetadataTooLarge.Code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// judgeMetadata creates the topics a client may create by asking for them.
// The broker's own way forgets them, records and all, when it is killed.
func (g *guard) judgeMetadata(f *frame, r *kmsg.MetadataRequest) verdict {
	if g.autoCreate == nil || !r.AllowAutoTopicCreation && f.version >= 4 {
		return verdict{pass: f.raw}
	}
	if len(r.Topics) > maxRequestTopics {
		return refuse("%d topics in one request", len(r.Topics))
	}
	for _, t := range r.Topics {
		if t.Topic == nil || !validTopicName(*t.Topic) || g.partitions.Load() >= maxPartitions {
			continue
		}
		if err := g.autoCreate(*t.Topic); err != nil {
			g.cfg.Logger.Warn("embedded broker: topic not created", "topic", *t.Topic, "err", err)
		}
	}
	return verdict{pass: f.raw}
}

// clip keeps a client's bytes from flooding the log.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
