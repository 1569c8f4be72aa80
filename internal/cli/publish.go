package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/term"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

// maxMessage bounds one line of input.
const maxMessage = 8 << 20

type publishing struct {
	topic, key, typ, subject, tenant string
	headers                          []string
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
	f.StringVar(&p.key, "key", "", "record key; messages of one key keep their order")
	f.StringVar(&p.typ, "type", "", "full record name, such as logistica.orders.OrderCreated")
	f.StringVar(&p.subject, "subject", "", "the registry's subject")
	f.StringVar(&p.tenant, "tenant", "", "tenant to put into the envelope")
	f.StringArrayVar(&p.headers, "header", nil, "further header, NAME=VALUE; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		p.topic = args[0]
		if err := t.resolve(); err != nil {
			return err
		}
		in, err := messages(cmd, args[1:])
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
		if err := p.findSubject(cmd.Context()); err != nil {
			return err
		}
		return p.send(cmd.Context(), in, cmd.OutOrStdout())
	}
	return cmd
}

// messages is the JSON argument, or standard input.
func messages(cmd *cobra.Command, args []string) (io.Reader, error) {
	if len(args) == 1 && args[0] != "-" {
		return strings.NewReader(args[0]), nil
	}
	if f, ok := cmd.InOrStdin().(*os.File); ok && len(args) == 0 && term.IsTerminal(int(f.Fd())) {
		return nil, usagef("no message: give it as an argument, or one a line on standard input (- to type them)")
	}
	return cmd.InOrStdin(), nil
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

// send publishes each line. A line that does not fit is told with its number,
// and those before it stay sent.
func (p *publishing) send(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), maxMessage)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := p.one(ctx, line, out); err != nil {
			return fmt.Errorf("message %d: %w", n, err)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("message %d is larger than %s", n+1, size(maxMessage))
	}
	return lines.Err()
}

func (p *publishing) one(ctx context.Context, message []byte, out io.Writer) error {
	value, err := p.registry.EncodeJSON(ctx, p.subject, message)
	if err != nil {
		return err
	}
	rec := &kgo.Record{Topic: p.topic, Value: value, Headers: p.envelope()}
	if p.key != "" {
		rec.Key = []byte(p.key)
	}
	for _, h := range p.headers {
		name, v, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return usagef("--header %q: want NAME=VALUE", h)
		}
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(v)})
	}
	err = p.client.ProduceSync(ctx, rec).FirstErr()
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("topic %s does not exist; create it: waybill topics create %s", p.topic, p.topic)
	}
	if err != nil {
		return fmt.Errorf("publish to %s: %w", p.topic, err)
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
