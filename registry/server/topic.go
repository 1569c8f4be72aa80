package server

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
)

// compactionLag leaves time to write a refused record's place again before
// compaction could let it hide the record that holds.
const compactionLag = time.Hour

func (s *Server) declare(ctx context.Context) error {
	client, err := s.broker.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	topic := broker.Topic{Name: s.cfg.Topic, Partitions: 1, Compact: true}
	if err := broker.Declare(ctx, client, s.cfg.Capabilities, topic); err != nil {
		return fmt.Errorf("declare topic %s: %w", s.cfg.Topic, err)
	}
	if s.cfg.Capabilities.Compaction {
		s.delayCompaction(ctx, client)
	}
	return nil
}

// delayCompaction may be forbidden to us, and then the broker's own lag, the
// age of a segment, must do.
func (s *Server) delayCompaction(ctx context.Context, client *kgo.Client) {
	lag := fmt.Sprint(compactionLag.Milliseconds())
	_, err := kadm.NewClient(client).AlterTopicConfigs(ctx, []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "min.compaction.lag.ms", Value: &lag},
	}, s.cfg.Topic)
	if err != nil {
		s.cfg.Logger.WarnContext(ctx, "could not set min.compaction.lag.ms", "topic", s.cfg.Topic, "error", err)
	}
}
