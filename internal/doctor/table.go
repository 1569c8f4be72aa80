package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/relay"
)

func tablesThere(ctx context.Context, s *Subject) ([]Finding, error) {
	var missing []string
	err := s.db.QueryRow(ctx, `SELECT coalesce(array_agg(name), '{}') FROM unnest($1::text[]) name
		WHERE to_regclass('waybill.' || name) IS NULL`, []string{
		"outbox_events", "outbox_published", "outbox_slots", "outbox_stopped", "outbox_skips", "incidents",
	}).Scan(&missing)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return fail("missing in schema waybill: "+strings.Join(missing, ", "), "they are made when a program starts, which none has yet, or one of an older version",
			"waybill up, or waybill run ROLE against this database"), nil
	}
	return ok("all there"), nil
}

// daily are the tables with a partition for each day. An application that only
// writes events has no inbox.
var daily = []string{"outbox_events", "outbox_published", "inbox"}

func dailyThere(ctx context.Context, s *Subject) (there []string, err error) {
	err = s.db.QueryRow(ctx, `SELECT array_agg(name) FROM unnest($1::text[]) name WHERE to_regclass('waybill.' || name) IS NOT NULL`, daily).Scan(&there)
	return there, err
}

// dailyKept are those whose days somebody has to make: the inbox's are a
// consumer's, and where none ever ran nobody does, or needs to.
func dailyKept(ctx context.Context, s *Subject) ([]string, error) {
	there, err := dailyThere(ctx, s)
	if err != nil || !slices.Contains(there, "inbox") {
		return there, err
	}
	var consumed bool
	if err := s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.watermark)`).Scan(&consumed); err != nil {
		return nil, err
	}
	if !consumed {
		there = slices.DeleteFunc(there, func(t string) bool { return t == "inbox" })
	}
	return there, nil
}

// fewDays is how many days ahead should be there: a long weekend.
const fewDays = 2

// days looks whether the tables have partitions for the days to come.
func days(ctx context.Context, s *Subject) ([]Finding, error) {
	var lacking []string
	today := false
	there, err := dailyKept(ctx, s)
	if err != nil {
		return nil, err
	}
	for day := range fewDays + 1 {
		for _, t := range there {
			name := t + "_" + time.Now().UTC().AddDate(0, 0, day).Format("20060102")
			var there bool
			err := s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_inherits
				WHERE inhparent = ('waybill.' || $1)::regclass AND inhrelid = to_regclass('waybill.' || $2))`, t, name).Scan(&there)
			if err != nil {
				return nil, err
			}
			if !there {
				lacking, today = append(lacking, name), today || day == 0
			}
		}
	}
	const mend = "keep a relay and the consumers running, which make them each hour, and look for `make partitions` in their logs: a lock that they cannot get stands in the way (see transactions)"
	switch {
	case today:
		return fail("lacking today's: "+strings.Join(lacking, ", "), "rows go to the default partition, which makes adding the day dear and dropping it impossible", mend), nil
	case len(lacking) > 0:
		return warn("lacking: "+strings.Join(lacking, ", "), "from that day on rows go to the default partition", mend), nil
	}
	return ok("%d days ahead are there", fewDays), nil
}

// defaultPartitions looks for rows that found no day.
func defaultPartitions(ctx context.Context, s *Subject) ([]Finding, error) {
	var full []string
	all, err := dailyThere(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		var there bool
		if err := s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM waybill.`+t+`_default)`).Scan(&there); err != nil {
			return nil, err
		}
		if there {
			full = append(full, "waybill."+t+"_default")
		}
	}
	if len(full) == 0 {
		return ok("empty"), nil
	}
	return warn("rows in "+strings.Join(full, ", "), "a writer's clock dated events outside the days that have a partition, or today's was missing; such rows are not dropped with their day, and adding that day's partition later is dear",
		"set the clocks right (see clock) and have the days made (see days): rows move along when their day's partition is added. Retention takes published ones out of the outbox, in the relay's process each hour: those of past days with their day, those of the future once they are published for outbox.keep_days. To see them: SELECT id, time, source FROM waybill.outbox_events_default ORDER BY id"), nil
}

// backlogShare of the budget is where to begin to worry.
const backlogShare = 0.8

// backlog looks how close writers are to being refused.
func backlog(ctx context.Context, s *Subject) ([]Finding, error) {
	if s.messages() {
		return ok("not counted: events are in the WAL alone (see slot)"), nil
	}
	budget := s.MaxBacklog
	if budget <= 0 {
		budget = outbox.DefaultMaxBacklog
	}
	below, err := outbox.PublishedBelow(ctx, s.db, s.Relay.Slot)
	if err != nil {
		return nil, err
	}
	b, err := outbox.ReadBacklog(ctx, s.db, below, budget+1, 2)
	if err != nil {
		return nil, err
	}
	age := ""
	if b.Oldest != nil {
		age = ", the oldest for " + seconds(max(0, time.Since(*b.Oldest).Seconds()))
	}
	wait := "wait"
	if b.Events == 1 {
		wait = "waits"
	}
	what := fmt.Sprintf("%s %s to be published%s; the budget is %d", plural(b.Events, "event"), wait, age, budget)
	const mend = "find what holds the relay up: waybill outbox status"
	switch {
	case b.Events > budget:
		return fail("more than "+what, "writers are refused until it is below four fifths of the budget", mend), nil
	case float64(b.Events) > backlogShare*float64(budget):
		return warn(what, "past the budget writers are refused", mend), nil
	}
	return ok("%s", what), nil
}

func stopped(ctx context.Context, s *Subject) ([]Finding, error) {
	parts, err := relay.ReadStopped(ctx, s.db, s.Relay.Slot)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return ok("none"), nil
	}
	var list, skips []string
	for _, p := range parts {
		where := fmt.Sprintf("%s partition %d", p.Topic, p.Partition)
		if p.Partition < 0 {
			where = "all of " + p.Topic
		}
		list = append(list, fmt.Sprintf("%s since %s: %s", where, p.Since.Format(time.RFC3339), p.Error))
		skips = append(skips, "waybill outbox skip "+p.Event.String()+" --reason TEXT")
	}
	return fail(some(list), "nothing of these partitions is published until the broker takes the event it refuses",
		"mend what the broker says, after which it is tried again by itself; or give the event up: "+some(skips)), nil
}

func incidents(ctx context.Context, s *Subject) ([]Finding, error) {
	seen, err := incident.List(ctx, s.db, time.Now().Add(-24*time.Hour), 100)
	if err != nil {
		return nil, err
	}
	if len(seen) == 0 {
		return ok("none in the last day"), nil
	}
	var list []string
	for _, i := range seen {
		list = append(list, fmt.Sprintf("%s: %s of %s, %s", i.Part, i.Kind, i.Subject, times(i.Count)))
	}
	return warn(some(list), "something happened that an operator should know of", "waybill incidents"), nil
}
