package lag

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// spot is a partition of a topic.
type spot struct {
	topic     string
	partition int32
}

// survey is what one round was told. What could not be asked has its error,
// and what hangs on it stays out.
type survey struct {
	at     time.Time
	groups map[string]*told
	topics map[string]*topic
	starts map[spot]int64
	ends   map[spot]int64
	faults map[spot]error // of a partition

	broker   error // nothing of the broker is known
	partial  error // a part of the groups is not
	database error // nothing of the database is known
	reads    int
}

// told is what the coordinator and the database said of a group.
type told struct {
	name    string
	kind    string // of its protocol: classic or consumer
	members *int
	reads   map[string]bool // topics assigned or committed to
	commits map[spot]int64
	marks   map[spot]mark   // nil: the group keeps none in the database
	ours    map[string]bool // topics it keeps its place on in the database
	parked  map[spot]*Blocked
	err     error
}

// topic is a topic as the broker has it now.
type topic struct {
	id      [16]byte
	leaders map[int32]int32
}

// problem is what kept the round from knowing everything, for people.
func (v *survey) problem() string {
	err := errors.Join(v.broker, v.partial, v.database)
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// survey asks everything. Places are asked before ends, so that no group looks
// as if it were past its end.
func (m *Monitor) survey(ctx context.Context) *survey {
	v := &survey{at: time.Now(), groups: map[string]*told{}, topics: map[string]*topic{}, faults: map[spot]error{}}
	m.readDatabase(ctx, v)
	adm := kadm.NewClient(m.cl)
	if v.broker = m.listGroups(ctx, adm, v); v.broker != nil {
		return v
	}
	m.describe(ctx, adm, v)
	m.fetchOffsets(ctx, adm, v)
	if v.broker = m.readTopics(ctx, adm, v); v.broker != nil {
		return v
	}
	if v.ends, v.broker = m.listOffsets(ctx, v, -1); v.broker == nil {
		v.starts, v.broker = m.listOffsets(ctx, v, -2)
	}
	return v
}

func (v *survey) group(name string) *told {
	g := v.groups[name]
	if g == nil {
		g = &told{name: name, reads: map[string]bool{}, commits: map[spot]int64{}, parked: map[spot]*Blocked{}}
		v.groups[name] = g
	}
	return g
}

func (m *Monitor) listGroups(ctx context.Context, adm *kadm.Client, v *survey) error {
	listed, err := adm.ListGroups(ctx)
	if err != nil {
		err = fmt.Errorf("list groups: %w", err)
		if len(listed) == 0 {
			return err
		}
		v.partial = err
	}
	for _, l := range listed {
		if l.GroupType != "share" && m.wants(l.Group) {
			v.group(l.Group).kind = strings.ToLower(l.GroupType)
		}
	}
	// One that the broker does not know has nobody in it.
	for _, g := range v.groups {
		if _, there := listed[g.name]; !there && v.partial == nil {
			g.members = new(int)
		}
	}
	return nil
}

// describe learns who is in the groups, all of a protocol in one request.
func (m *Monitor) describe(ctx context.Context, adm *kadm.Client, v *survey) {
	var classic, next []string
	for name, g := range v.groups {
		switch {
		case g.members != nil:
		case g.kind == "consumer":
			next = append(next, name)
		default:
			classic = append(classic, name)
		}
	}
	if len(classic) > 0 {
		described, err := adm.DescribeGroups(ctx, classic...)
		for _, name := range classic {
			d, ok := described[name]
			m.members(v.groups[name], len(d.Members), errors.Join(d.Err, missing(ok, err)))
			for t := range d.AssignedPartitions() {
				v.groups[name].reads[t] = true
			}
		}
	}
	if len(next) > 0 {
		described, err := adm.DescribeConsumerGroups(ctx, next...)
		for _, name := range next {
			d, ok := described[name]
			m.members(v.groups[name], len(d.Members), errors.Join(d.Err, missing(ok, err)))
			for _, member := range d.Members {
				for t := range member.Assignment {
					v.groups[name].reads[t] = true
				}
			}
		}
	}
}

func (m *Monitor) members(g *told, n int, err error) {
	if err != nil {
		g.err = fmt.Errorf("describe group: %w", err)
		return
	}
	g.members = &n
}

func missing(ok bool, err error) error {
	if ok {
		return nil
	}
	if err == nil {
		err = errors.New("no answer")
	}
	return err
}

func (m *Monitor) fetchOffsets(ctx context.Context, adm *kadm.Client, v *survey) {
	if len(v.groups) == 0 {
		return
	}
	all := adm.FetchManyOffsets(ctx, slices.Collect(maps.Keys(v.groups))...)
	for name, g := range v.groups {
		fetched, ok := all[name]
		if err := errors.Join(fetched.Err, missing(ok, nil)); err != nil {
			if !errors.Is(err, kerr.GroupIDNotFound) { // known to the database alone
				g.err = fmt.Errorf("fetch offsets: %w", err)
			}
			continue
		}
		fetched.Fetched.Each(func(o kadm.OffsetResponse) {
			at := spot{o.Topic, o.Partition}
			g.reads[o.Topic] = true
			switch {
			case o.Err != nil:
				g.err = fmt.Errorf("fetch offsets of %s: %w", o.Topic, o.Err)
			case o.At >= 0:
				g.commits[at] = o.At
			}
		})
	}
}

// readTopics learns ids and leaders of the topics that somebody reads, and of
// their dead letters.
func (m *Monitor) readTopics(ctx context.Context, adm *kadm.Client, v *survey) error {
	details, err := adm.ListTopics(kadm.WithAuthorizedOps(ctx)) // which asks, and not the client's cache
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	wanted := map[string]bool{}
	for _, g := range v.groups {
		for t := range g.reads {
			wanted[t] = true
		}
	}
	for name, d := range details {
		group, dead := deadLetterGroup(name)
		if d.Err != nil || !wanted[name] && (!dead || v.groups[group] == nil) {
			continue
		}
		t := &topic{id: d.ID, leaders: map[int32]int32{}}
		for p, of := range d.Partitions {
			t.leaders[p] = of.Leader
		}
		v.topics[name] = t
	}
	return nil
}

// deadLetterGroup is the group whose dead letters a topic holds, by its name:
// TOPIC.dlq.GROUP.
func deadLetterGroup(topic string) (group string, ok bool) {
	_, group, ok = strings.Cut(topic, ".dlq.")
	return group, ok
}

// listOffsets asks for the end (-1) or the start (-2) of every partition.
func (m *Monitor) listOffsets(ctx context.Context, v *survey, which int64) (map[spot]int64, error) {
	out := map[spot]int64{}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	for name, t := range v.topics {
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = name
		for p := range t.leaders {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp = p, which
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	if len(req.Topics) == 0 {
		return out, nil
	}
	var failed error
	for _, shard := range m.cl.RequestSharded(ctx, req) {
		if shard.Err != nil {
			failed = shard.Err
			v.fault(shard.Req, shard.Err)
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				at := spot{t.Topic, p.Partition}
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					v.faults[at] = err
				} else if p.Offset >= 0 {
					out[at] = p.Offset
				}
			}
		}
	}
	if failed != nil && len(out) == 0 {
		return nil, fmt.Errorf("list offsets: %w", failed)
	}
	return out, nil
}

// fault keeps why the partitions of a request are not known.
func (v *survey) fault(req kmsg.Request, err error) {
	if r, ok := req.(*kmsg.ListOffsetsRequest); ok {
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				v.faults[spot{t.Topic, p.Partition}] = err
			}
		}
	}
}
