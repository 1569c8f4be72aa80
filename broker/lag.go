package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// PartitionLag is how far a group is behind on one partition, in records. A
// nil figure is unknown. A partition the group never committed has its Start,
// the most it may still have to read, but no Lag: where it begins is its own
// setting. Where such a partition holds no record, the lag is zero and known.
type PartitionLag struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Start     *int64 `json:"start"`
	Committed *int64 `json:"committed"`
	End       *int64 `json:"end"`
	Lag       *int64 `json:"lag"`
	Error     string `json:"error,omitempty"`
}

// Lag compares the commits of the named groups, or of all, with the ends of
// their topics: every partition of every topic the group has committed to or
// is assigned. Sorted by group, topic, partition.
func Lag(ctx context.Context, cl *kgo.Client, groups ...string) ([]PartitionLag, error) {
	all, err := ListGroups(ctx, cl)
	if err != nil {
		return nil, err
	}
	adm := kadm.NewClient(cl)
	out := []PartitionLag{}
	var errs []error
	for _, g := range all {
		if len(groups) > 0 && !slices.Contains(groups, g.Name) {
			continue
		}
		lags, err := groupLag(ctx, adm, g)
		if err != nil {
			errs = append(errs, err)
		}
		out = append(out, lags...)
	}
	return out, errors.Join(errs...)
}

func groupLag(ctx context.Context, adm *kadm.Client, g GroupInfo) ([]PartitionLag, error) {
	if len(g.Topics) == 0 {
		return nil, nil
	}
	commits, err := adm.FetchOffsets(ctx, g.Name)
	if err != nil {
		return nil, fmt.Errorf("fetch offsets of %s: %w", g.Name, err)
	}
	starts, err := adm.ListStartOffsets(ctx, g.Topics...)
	if err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	ends, err := adm.ListEndOffsets(ctx, g.Topics...)
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	var out []PartitionLag
	for _, t := range g.Topics {
		for _, p := range partitionsOf(t, commits, ends) {
			out = append(out, partitionLag(g.Name, t, p, commits, starts, ends))
		}
	}
	return out, nil
}

func partitionsOf(topic string, commits kadm.OffsetResponses, ends kadm.ListedOffsets) []int32 {
	set := make(map[int32]bool)
	for p := range ends[topic] {
		set[p] = true
	}
	for p := range commits[topic] {
		set[p] = true
	}
	delete(set, -1) // how an unknown topic is reported
	return slices.Sorted(maps.Keys(set))
}

func partitionLag(group, topic string, p int32, commits kadm.OffsetResponses, starts, ends kadm.ListedOffsets) PartitionLag {
	l := PartitionLag{Group: group, Topic: topic, Partition: p}
	var err1, err2 error
	l.Start, err1 = offset(starts, topic, p)
	l.End, err2 = offset(ends, topic, p)
	commit, ok := commits.Lookup(topic, p)
	if ok && commit.Err == nil && commit.At >= 0 {
		l.Committed = &commit.At
	}
	if err := errors.Join(err1, err2, commit.Err); err != nil {
		l.Error = err.Error()
	}
	if l.Committed == nil && l.Start != nil && l.End != nil && *l.Start == *l.End {
		l.Lag = new(int64)
	}
	if l.End != nil && l.Committed != nil {
		// A commit below the start points at records that are gone; what
		// can still be read counts from the start.
		from := *l.Committed
		if l.Start != nil {
			from = max(from, *l.Start)
		}
		lag := max(0, *l.End-from)
		l.Lag = &lag
	}
	return l
}

func offset(listed kadm.ListedOffsets, topic string, p int32) (*int64, error) {
	o, ok := listed.Lookup(topic, p)
	switch {
	case !ok:
		return nil, nil
	case o.Err != nil:
		return nil, o.Err
	case o.Offset < 0:
		return nil, nil
	}
	return &o.Offset, nil
}
