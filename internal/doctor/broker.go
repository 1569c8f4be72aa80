package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
)

// lookAtBroker asks the broker, and about topics only if it answers.
func lookAtBroker(ctx context.Context, s Subject) []Finding {
	var cl *kgo.Client
	var caps broker.Capabilities
	found := check{"broker", func(ctx context.Context, s *Subject) (found []Finding, err error) {
		cl, caps, found, err = reach(ctx, s)
		return found, err
	}}.run(ctx, &s)
	if cl == nil {
		return found
	}
	defer cl.Close()
	return append(found, check{"topics", func(ctx context.Context, s *Subject) ([]Finding, error) {
		return topics(ctx, cl, caps, s.Topics)
	}}.run(ctx, &s)...)
}

// reach opens a client if the broker answers, and tells what it can do.
func reach(ctx context.Context, s *Subject) (*kgo.Client, broker.Capabilities, []Finding, error) {
	var caps broker.Capabilities
	at := strings.Join(s.Broker.Brokers, ", ")
	cl, err := s.Broker.Client()
	if err != nil {
		return nil, caps, nil, err
	}
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := cl.Ping(within); err != nil {
		cl.Close()
		return nil, caps, fail(fmt.Sprintf("none answers at %s: %v", at, err), "events are not published, and consumers stand still",
			s.startIt()+", or name another in WAYBILL_KAFKA_BROKERS, its TLS and SASL in the configuration file"), nil
	}
	caps, err = broker.AskCapabilities(within, cl)
	if err != nil {
		return cl, caps, nil, err
	}
	meta, err := kadm.NewClient(cl).BrokerMetadata(within)
	if err != nil {
		return cl, caps, nil, err
	}
	what := fmt.Sprintf("%d answer at %s; transactions %s, share groups %s", len(meta.Brokers), at, yes(caps.Transactions), yes(caps.ShareGroups))
	if s.Relay.ExactlyOnce && !caps.Transactions {
		return cl, caps, fail(what, "exactly_once publishes in transactions, which this broker does not take",
			"set outbox: {exactly_once: false}, or name a Kafka in WAYBILL_KAFKA_BROKERS"), nil
	}
	return cl, caps, ok("%s", what), nil
}

func yes(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// topics compares them with their declarations.
func topics(ctx context.Context, cl *kgo.Client, caps broker.Capabilities, declared []broker.Topic) ([]Finding, error) {
	there, err := broker.ListTopics(ctx, cl)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, t := range there {
		known[t.Name] = true
	}
	var missing []string
	var rest []broker.Topic
	for _, t := range declared {
		if known[t.Name] {
			rest = append(rest, t)
		} else {
			missing = append(missing, t.Name)
		}
	}
	// Of topics that are there it only compares.
	err = broker.Declare(ctx, cl, caps, rest...)
	var drift *broker.DriftError
	switch {
	case errors.As(err, &drift):
		return warn(drift.Topic+" is not as declared: "+differences(drift), "what its owner counts on, such as order or how far back it can be read, may not hold", mends(drift)), nil
	case err != nil:
		return nil, err
	case len(missing) > 0:
		return warn("missing: "+strings.Join(missing, ", "), "events of a topic that is not there stop", "waybill up or waybill run makes them when it starts"), nil
	}
	names := make([]string, len(declared))
	for i, t := range declared {
		names[i] = t.Name
	}
	return ok("%d of %s on the broker are declared here, and are as declared: %s", len(declared), plural(int64(len(there)), "topic"), some(names)), nil
}

func differences(d *broker.DriftError) string {
	var list []string
	for _, x := range d.Drifts {
		list = append(list, fmt.Sprintf("%s is %s, not %s", x.What, x.Is, x.Want))
	}
	return strings.Join(list, ", ")
}

func mends(d *broker.DriftError) string {
	var list []string
	for _, x := range d.Drifts {
		list = append(list, x.Mend)
	}
	return strings.Join(list, "; ")
}
