package lag

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Bounds of one request for records. The broker always gives the first
// partition a batch, however large; the others only what fits.
const (
	readSpots     = 256
	readBytes     = 8 << 20
	readSpotBytes = 64 << 10
	// largeCosts is what a request counts for, in records, that brought little
	// since batches are large: it moved as much as one that brought many.
	largeCosts = 32
)

// readStamps reads the records that groups stand at, as many as the budget of a
// round allows, those partitions first that have not been asked for longest.
func (m *Monitor) readStamps(ctx context.Context, v *survey) {
	if v.broker != nil {
		return
	}
	wanted := m.wanted(v)
	for where := range m.stamps.exact {
		if _, still := wanted[where]; !still {
			delete(m.stamps.exact, where)
		}
	}
	var open []place
	for where, end := range wanted {
		if _, exact, _, ok := m.stamps.at(where, end, v.at); !ok || !exact {
			open = append(open, where)
		}
	}
	budget := max(1, int(float64(m.cfg.Reads)*m.cfg.Every.Seconds()))
	decompress := kgo.DefaultDecompressor()
	for budget > 0 && len(open) > 0 && ctx.Err() == nil {
		var chunk []place
		chunk, open = m.choose(open, min(budget, readSpots))
		left := m.fetch(ctx, v, chunk, decompress)
		served := len(chunk) - len(left)
		budget -= max(served, 1)
		if len(left) > served {
			budget -= largeCosts
		}
		// What did not fit beside the others is asked again first, if any fitted.
		if len(left) < len(chunk) {
			open = append(left, open...)
		}
	}
}

// wanted is every place that some group stands at while behind, with the end of
// its partition.
func (m *Monitor) wanted(v *survey) map[place]int64 {
	out := map[place]int64{}
	for _, g := range v.groups {
		for at := range v.places(g) {
			p := v.stand(g, at)
			if p.from != nil && p.end != nil && *p.from < *p.end {
				out[place{at, *p.from}] = *p.end
			}
		}
	}
	return out
}

// choose takes the next places to read, one of a partition, and what is left.
func (m *Monitor) choose(open []place, n int) (chunk, rest []place) {
	asked := func(p place) time.Time {
		if past := m.stamps.past[p.spot]; past != nil {
			return past.asked
		}
		return time.Time{}
	}
	slices.SortStableFunc(open, func(a, b place) int {
		if c := asked(a).Compare(asked(b)); c != 0 {
			return c
		}
		return int(min(max(a.offset-b.offset, -1), 1))
	})
	taken := map[spot]bool{}
	for _, p := range open {
		if len(chunk) < n && !taken[p.spot] {
			taken[p.spot] = true
			chunk = append(chunk, p)
		} else {
			rest = append(rest, p)
		}
	}
	return chunk, rest
}

// fetch reads the records at the places, and returns those that did not fit.
func (m *Monitor) fetch(ctx context.Context, v *survey, chunk []place, d kgo.Decompressor) (left []place) {
	byLeader := map[int32][]place{}
	for _, p := range chunk {
		if past := m.stamps.past[p.spot]; past != nil {
			past.asked = time.Now()
		}
		if t := v.topics[p.topic]; t != nil {
			leader := t.leaders[p.partition]
			byLeader[leader] = append(byLeader[leader], p)
		}
	}
	for _, leader := range slices.Sorted(maps.Keys(byLeader)) {
		places := byLeader[leader]
		resp, err := m.cl.Broker(int(leader)).RetriableRequest(ctx, fetchRequest(places))
		if err != nil {
			continue // stays estimated or unknown; the next round asks again
		}
		left = append(left, m.take(v, places, resp.(*kmsg.FetchResponse), d)...)
	}
	return left
}

func fetchRequest(places []place) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, 0, 0, readBytes
	byTopic := map[string]int{}
	for _, p := range places {
		i, there := byTopic[p.topic]
		if !there {
			i = len(req.Topics)
			byTopic[p.topic] = i
			rt := kmsg.NewFetchRequestTopic()
			rt.Topic = p.topic
			req.Topics = append(req.Topics, rt)
		}
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p.partition, p.offset, readSpotBytes
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, rp)
	}
	return req
}

func (m *Monitor) take(v *survey, places []place, resp *kmsg.FetchResponse, d kgo.Decompressor) (left []place) {
	asked := make(map[spot]place, len(places))
	for _, p := range places {
		asked[p.spot] = p
	}
	for _, t := range resp.Topics {
		for i := range t.Partitions {
			rp := &t.Partitions[i]
			where, ok := asked[spot{t.Topic, rp.Partition}]
			if !ok || rp.ErrorCode != 0 {
				delete(asked, where.spot)
				continue
			}
			if got, whole := firstRecord(where, rp, d); whole {
				delete(asked, where.spot)
				m.stamps.keep(where, got, v.at)
				v.reads++
			}
		}
	}
	for _, p := range asked {
		left = append(left, p)
	}
	return left
}

// firstRecord is the first record at or after where; whole is false if the
// answer does not tell, as one that was cut short.
func firstRecord(where place, rp *kmsg.FetchResponseTopicPartition, d kgo.Decompressor) (stamp, bool) {
	end := rp.HighWatermark
	got, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Topic: where.topic, Partition: where.partition, Offset: where.offset,
	}, rp, d, nil)
	switch {
	case len(got.Records) > 0:
		return stamp{time: got.Records[0].Timestamp}, true
	case got.Err == nil && next > where.offset && next >= end:
		return stamp{empty: true, end: end}, true
	}
	return stamp{}, false
}
