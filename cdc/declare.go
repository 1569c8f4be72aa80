package cdc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/waybillhq/waybill/broker"
)

// declareTopics makes topics that are missing and gives the ids of all. One
// that differs from its declaration is told and left: an operator may have had
// reasons.
func (s *session) declareTopics(ctx context.Context, tables []Table) (map[string]string, error) {
	topics := Topics(s.cfg.Partitions, tables...)
	if len(topics) == 0 {
		return nil, nil
	}
	err := broker.Declare(ctx, s.client, s.cfg.Capabilities, topics...)
	var drift *broker.DriftError
	if errors.As(err, &drift) {
		if !s.drifted {
			s.log.WarnContext(ctx, "topics differ from their declaration", "error", err)
		}
		s.drifted, err = true, nil
	}
	if err != nil {
		return nil, fmt.Errorf("declare topics: %w", err)
	}
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	return s.topicIDs(ctx, names)
}

// topicIDs waits for topics that were made a moment ago: a broker of several
// nodes does not know them everywhere at once.
func (s *session) topicIDs(ctx context.Context, names []string) (map[string]string, error) {
	adm := kadm.NewClient(s.client)
	for tries := 0; ; tries++ {
		// Asking for rights makes kadm ask the broker and not its cache.
		there, err := adm.ListTopics(kadm.WithAuthorizedOps(ctx), names...)
		if err == nil {
			err = there.Error()
		}
		if err == nil {
			ids := map[string]string{}
			for _, t := range there {
				ids[t.Topic] = t.ID.String()
			}
			return ids, nil
		}
		if tries == 100 || ctx.Err() != nil {
			return nil, fmt.Errorf("look for topics: %w", err)
		}
		pause(ctx, 50*time.Millisecond)
	}
}
