package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/waybillhq/waybill/broker"
)

// plan finds out which partitions move, from where and to where.
func (r *resetting) plan(ctx context.Context, topic string, to To) error {
	states, err := Partitions(ctx, r.deps.DB, r.group)
	if err != nil {
		return err
	}
	topics := map[string]bool{}
	stopped := map[place]bool{}
	for _, p := range states {
		if topic == "" || topic == p.Topic {
			topics[p.Topic] = true
		}
		stopped[place{p.Topic, p.Partition}] = p.Stopped != ""
	}
	if topic != "" {
		topics[topic] = true
	}
	if len(topics) == 0 {
		return errors.New("it has read nothing: name a topic to say where it shall begin")
	}
	saved, err := r.saved(ctx)
	if err != nil {
		return err
	}
	for t := range topics {
		there, err := r.bounds(ctx, t)
		if err != nil {
			return err
		}
		for at, b := range there {
			if r.opts.Stopped && !stopped[at] {
				continue
			}
			m, err := r.target(ctx, at, b, saved, to)
			if err != nil {
				return err
			}
			r.moved = append(r.moved, m)
		}
	}
	if len(r.moved) == 0 {
		return errors.New("none of its partitions is stopped")
	}
	sortMoved(r.moved)
	if r.opts.Stopped {
		return nil
	}
	return r.refuseRunning(ctx)
}

// refuseRunning fails while the broker has members of the group.
func (r *resetting) refuseRunning(ctx context.Context) error {
	groups, err := broker.ListGroups(ctx, r.cl)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.Name != r.group {
			continue
		}
		if g.Error != "" {
			return fmt.Errorf("whether it has members is not known: %s", g.Error)
		}
		if len(g.Members) > 0 {
			return fmt.Errorf("%w: %d of them; stop them first, or reset its stopped partitions only (--stopped)", ErrRunning, len(g.Members))
		}
	}
	return nil
}

func (r *resetting) saved(ctx context.Context) (map[place]position, error) {
	rows, err := r.deps.DB.Query(ctx, `SELECT topic, partition, topic_id, next_offset FROM waybill.watermark WHERE group_name = $1`, r.group)
	if err != nil {
		return nil, fmt.Errorf("load watermarks: %w", err)
	}
	out := map[place]position{}
	var p position
	_, err = pgx.ForEachRow(rows, []any{&p.topic, &p.id, &p.topicID, &p.next}, func() error {
		out[p.place] = p
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load watermarks: %w", err)
	}
	return out, nil
}

// bounds is what the broker has of a topic.
func (r *resetting) bounds(ctx context.Context, topic string) (map[place]bounds, error) {
	ids, err := broker.TopicIDs(ctx, r.cl, topic)
	if err != nil {
		return nil, err
	}
	id, ok := ids[topic]
	if !ok {
		return nil, fmt.Errorf("topic %s does not exist: name another with --topic", topic)
	}
	adm := kadm.NewClient(r.cl)
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("starts of %s: %w", topic, err)
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("ends of %s: %w", topic, err)
	}
	if err := errors.Join(starts.Error(), ends.Error()); err != nil {
		return nil, fmt.Errorf("bounds of %s: %w", topic, err)
	}
	out := map[place]bounds{}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		out[place{end.Topic, end.Partition}] = bounds{id, start.Offset, end.Offset}
	})
	return out, nil
}

// target is where one partition moves.
func (r *resetting) target(ctx context.Context, at place, b bounds, saved map[place]position, to To) (Moved, error) {
	m := Moved{Topic: at.topic, Partition: at.id, place: at, b: b, To: b.start}
	switch to.what {
	case toBeginning:
	case toNow:
		m.To = b.end
	case toOffset:
		if m.To = to.offset; m.To < b.start || m.To > b.end {
			return m, fmt.Errorf("offset %d is not in %s, which has %d to %d", to.offset, m, b.start, b.end)
		}
	case toTime:
		listed, err := kadm.NewClient(r.cl).ListOffsetsAfterMilli(ctx, to.at.UnixMilli(), at.topic)
		if err != nil {
			return m, fmt.Errorf("offset of %s at that time: %w", m, err)
		}
		found, ok := listed.Lookup(at.topic, at.id)
		if !ok || found.Err != nil {
			return m, fmt.Errorf("offset of %s at that time is not known: %w", m, errors.Join(found.Err, errUnlisted))
		}
		m.To = found.Offset
	}
	was, ok := saved[at]
	if !ok {
		return m, nil
	}
	m.From = &was.next
	m.other = was.topicID != b.topicID || was.next > b.end
	if !m.other {
		m.Again, m.Passed = max(0, was.next-m.To), max(0, m.To-was.next)
	}
	return m, nil
}

func sortMoved(all []Moved) {
	slices.SortFunc(all, func(a, b Moved) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}

// tell has the broker's offsets follow, for others to see. It refuses while
// members are there, who then do it.
func (r *resetting) tell(ctx context.Context) {
	var offsets kadm.Offsets
	for _, m := range r.moved {
		offsets.AddOffset(m.Topic, m.Partition, m.To, -1)
	}
	_, _ = kadm.NewClient(r.cl).CommitOffsets(ctx, r.group, offsets)
}
