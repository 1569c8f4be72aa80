package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

type publishing struct {
	topic, key, typ, subject, tenant string
	given                            []string // further headers, as they were given
	headers                          []kgo.RecordHeader
	json                             bool
	client                           *kgo.Client
	registry                         *registry.Client
}

func newPublish() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "publish TOPIC [JSON]",
		Short: "Send messages: JSON in, encoded by the subject's latest schema",
		Long: `Sends one JSON message, or one a line from standard input, each encoded in Avro
by the latest schema of its subject. The subject is --subject, or TOPIC-TYPE
with --type, or the only one that begins with "TOPIC-".`,
		Example: `  waybill topics create notes
  waybill publish notes '{"text":"hello"}' --key k1`,
		Args: cobra.RangeArgs(1, 2),
	}
	p, t := publishing{}, targetFlags(cmd, false)
	f := cmd.Flags()
	f.BoolVar(&p.json, "json", false, "print where each went as a line of JSON, for machines")
	f.StringVar(&p.key, "key", "", "record key; messages of one key keep their order")
	f.StringVar(&p.typ, "type", "", "full record name, such as logistica.orders.OrderCreated")
	f.StringVar(&p.subject, "subject", "", "the registry's subject")
	f.StringVar(&p.tenant, "tenant", "", "tenant to put into the envelope")
	f.StringArrayVar(&p.given, "header", nil, "further header, NAME=VALUE; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		p.topic = args[0]
		if err := p.parseHeaders(); err != nil {
			return err
		}
		if err := t.resolve(); err != nil {
			return err
		}
		in, err := input(cmd, args[1:])
		if err != nil {
			return err
		}
		if p.registry, err = t.registryClient(); err != nil {
			return usageError{err}
		}
		// A topic that is not there must be told at once, not waited for.
		if p.client, err = t.client(cmd.Context(), kgo.ProducerLinger(0), kgo.UnknownTopicRetries(0)); err != nil {
			return err
		}
		defer p.client.Close()
		topics, err := broker.ListTopics(cmd.Context(), p.client)
		if err == nil {
			err = hasTopic(topics, p.topic)
		}
		if err != nil {
			return err
		}
		if err := p.findSubject(cmd.Context()); err != nil {
			return registryHint(err)
		}
		return registryHint(p.send(cmd.Context(), in, cmd.OutOrStdout()))
	}
	return cmd
}

func (p *publishing) parseHeaders() error {
	for _, h := range p.given {
		name, v, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return usagef("--header %q: want NAME=VALUE", h)
		}
		p.headers = append(p.headers, kgo.RecordHeader{Key: name, Value: []byte(v)})
	}
	return nil
}

func (p *publishing) findSubject(ctx context.Context) error {
	switch {
	case p.subject != "":
		return nil
	case p.typ != "":
		p.subject = p.topic + "-" + p.typ
		return nil
	}
	found, err := p.registry.Subjects(ctx, p.topic+"-")
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return &registry.UnknownSubjectError{Subject: p.topic + "-value", Registry: p.registry.URL()}
	case len(found) > 1:
		return usagef("topic %s carries several types; say which with --subject:\n  %s", p.topic, strings.Join(found, "\n  "))
	}
	p.subject = found[0]
	return nil
}

// send publishes each message. One that does not fit is told with its number,
// which is that of its line, and those before it stay sent.
func (p *publishing) send(ctx context.Context, next messages, out io.Writer) error {
	for n := 1; ; n++ {
		message, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(message) > 0 {
			err = p.one(ctx, message, out)
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", n, err)
		}
	}
}

func (p *publishing) one(ctx context.Context, message []byte, out io.Writer) error {
	value, err := p.registry.EncodeJSON(ctx, p.subject, message)
	if err != nil {
		return err
	}
	rec := &kgo.Record{Topic: p.topic, Value: value, Headers: append(p.envelope(), p.headers...)}
	if p.key != "" {
		rec.Key = []byte(p.key)
	}
	err = p.client.ProduceSync(ctx, rec).FirstErr()
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("topic %s does not exist; create it: waybill topics create %s", p.topic, p.topic)
	}
	if err != nil {
		return fmt.Errorf("publish to %s: %w", p.topic, err)
	}
	if p.json {
		return json.NewEncoder(out).Encode(map[string]any{"topic": rec.Topic, "partition": rec.Partition, "offset": rec.Offset})
	}
	_, err = fmt.Fprintf(out, "%s partition %d offset %d\n", rec.Topic, rec.Partition, rec.Offset)
	return err
}

func (p *publishing) envelope() []kgo.RecordHeader {
	e := event.Envelope{
		ID: event.NewID(), Source: "/waybill/publish", Time: time.Now(), Tenant: p.tenant, Subject: p.key,
		Type: strings.TrimPrefix(p.subject, p.topic+"-"),
	}
	e.CorrelationID = e.ID.String()
	var out []kgo.RecordHeader
	e.Headers(func(name, v string) {
		if v != "" {
			out = append(out, kgo.RecordHeader{Key: name, Value: []byte(v)})
		}
	})
	return out
}
