package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// Drift is one way a topic differs from its declaration.
type Drift struct {
	What string `json:"what"` // "partitions" or the name of a topic setting
	Is   string `json:"is"`
	Want string `json:"want"`
	Mend string `json:"mend"` // what an operator can do about it
}

// DriftError says that a topic is not what its owner declared.
type DriftError struct {
	Topic  string
	Drifts []Drift
}

// Error names the topic, what is, what should be, and the mend.
func (e *DriftError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "topic %s differs from its declaration:", e.Topic)
	for i, d := range e.Drifts {
		if i > 0 {
			b.WriteByte(';')
		}
		fmt.Fprintf(&b, " %s is %s, should be %s (%s)", d.What, d.Is, d.Want, d.Mend)
	}
	return b.String()
}

func check(ctx context.Context, adm *kadm.Client, caps Capabilities, topics []Topic) error {
	if len(topics) == 0 {
		return nil
	}
	there, err := adm.ListTopics(fresh(ctx), names(topics)...)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, names(topics)...)
	if err != nil {
		return fmt.Errorf("describe topic configs: %w", err)
	}
	var errs []error
	for _, t := range topics {
		rc, err := configs.On(t.Name, nil)
		if err == nil {
			err = rc.Err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("describe topic %s: %w", t.Name, err))
			continue
		}
		drifts := t.drifts(caps, len(there[t.Name].Partitions), values(rc))
		if len(drifts) > 0 {
			errs = append(errs, &DriftError{Topic: t.Name, Drifts: drifts})
		}
	}
	return errors.Join(errs...)
}

func (t Topic) drifts(caps Capabilities, partitions int, is map[string]string) []Drift {
	var out []Drift
	if t.Partitions > 0 && partitions != int(t.Partitions) {
		out = append(out, Drift{
			What: "partitions", Is: strconv.Itoa(partitions), Want: strconv.Itoa(int(t.Partitions)),
			Mend: t.partitionMend(partitions),
		})
	}
	for _, s := range t.settings(caps) {
		if is[s.name] == s.value {
			continue
		}
		out = append(out, Drift{
			What: s.name, Is: is[s.name], Want: s.value,
			Mend: fmt.Sprintf("kafka-configs.sh --alter --entity-type topics --entity-name %s --add-config %s=%s, or change the declaration", t.Name, s.name, s.value),
		})
	}
	return out
}

// Adding partitions moves keys to other partitions, which breaks their order
// while both are being read, so it is never done behind the operator's back.
func (t Topic) partitionMend(is int) string {
	if is > int(t.Partitions) {
		return "partitions cannot be taken away: declare " + strconv.Itoa(is) + ", or recreate the topic"
	}
	return fmt.Sprintf("stop the producers, let every group reach the end, then kafka-topics.sh --alter --topic %s --partitions %d", t.Name, t.Partitions)
}

func values(rc kadm.ResourceConfig) map[string]string {
	out := make(map[string]string, len(rc.Configs))
	for _, c := range rc.Configs {
		out[c.Key] = c.MaybeValue()
	}
	return out
}
