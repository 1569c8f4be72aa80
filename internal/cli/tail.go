package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newTail() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tail TOPIC",
		Short: "Show the last records of a topic, envelope and body, and follow it",
		Args:  cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, false)
	f := cmd.Flags()
	last := f.Int64P("last", "n", 10, "records of each partition to begin with")
	count := f.Int("count", 0, "stop after so many records; 0: do not stop")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *last < 0 {
			return usagef("--last %d: want 0 or more", *last)
		}
		if *count < 0 {
			return usagef("--count %d: want 0 or more", *count)
		}
		r, err := openReader(cmd.Context(), t, args[0], kgo.ConsumeTopics(args[0]),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd().Relative(-*last)))
		if err != nil {
			return err
		}
		defer r.close(false)
		return r.follow(cmd.Context(), *count, func(rec *kgo.Record) error {
			s := shownRecord(rec)
			info, body, err := r.decoder.DecodeAny(cmd.Context(), rec.Value)
			if err != nil {
				s.Error = err.Error()
			} else {
				s.Schema, s.Body = info.ID, body
			}
			return s.print(cmd.OutOrStdout(), *asJSON)
		})
	}
	return cmd
}

// shown is a record as tail prints it.
type shown struct {
	Topic     string            `json:"topic"`
	Partition int32             `json:"partition"`
	Offset    int64             `json:"offset"`
	Published time.Time         `json:"published"`
	Key       string            `json:"key"`
	Headers   map[string]string `json:"headers"`
	Schema    int               `json:"schema_id,omitempty"`
	Body      json.RawMessage   `json:"body,omitempty"`
	Error     string            `json:"error,omitempty"`
}

func shownRecord(rec *kgo.Record) shown {
	s := shown{
		Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset,
		Published: rec.Timestamp, Key: string(rec.Key), Headers: map[string]string{},
	}
	for _, h := range rec.Headers {
		s.Headers[h.Key] = string(h.Value)
	}
	return s
}

func (s shown) print(out io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return e.Encode(s)
	}
	body := string(s.Body)
	if s.Error != "" {
		body = "cannot be decoded: " + s.Error
	}
	_, err := fmt.Fprintf(out, "%s  %d@%d  %s  key=%s tenant=%s seq=%s\n    %s\n",
		s.Published.Local().Format("2006-01-02T15:04:05.000Z07:00"), s.Partition, s.Offset,
		or(s.Headers["ce_type"], "(no type)"), s.Key, s.Headers["ce_tenant"], or(s.Headers["ce_sequence"], "-"), body)
	return err
}
