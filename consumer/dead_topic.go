package consumer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/waybillhq/waybill/broker"
)

// deadFor is how long a dead letter topic keeps copies.
const deadFor = 30 * 24 * time.Hour

// What brokers take as a topic's name.
const maxTopicName = 249

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// DeadTopic is where copies of a group's dead events of a topic go.
func DeadTopic(topic, group string) string { return topic + ".dlq." + group }

// checkDeadTopics refuses names at the start that would be refused at the first
// death.
func (g *Group) checkDeadTopics() error {
	var errs []error
	for _, topic := range g.topics() {
		errs = append(errs, CheckDeadTopic(topic, g.cfg.Group))
	}
	return errors.Join(errs...)
}

// CheckDeadTopic refuses the name of [DeadTopic] where a broker would.
func CheckDeadTopic(topic, group string) error {
	name := DeadTopic(topic, group)
	switch {
	case len(name) > maxTopicName:
		return fmt.Errorf("its dead letters of %s would go to a topic of %d letters, and a broker takes %d: give the group a shorter name", topic, len(name), maxTopicName)
	case !topicName.MatchString(name):
		return fmt.Errorf("its dead letters of %s would go to topic %q, which no broker takes: name the group in letters, digits, '.', '_' and '-'", topic, name)
	}
	return nil
}

func deadTopicNamed(name string) broker.Topic {
	return broker.Topic{Name: name, Partitions: 1, Retention: deadFor}
}

// DeclaredDeadTopic is [DeadTopic] as its group declares it.
func DeclaredDeadTopic(topic, group string) broker.Topic {
	return deadTopicNamed(DeadTopic(topic, group))
}

// declareDead makes the topic of copies if it is not there. One that differs is
// told and used as it is.
func (s *session) declareDead(ctx context.Context, name string) error {
	err := broker.Declare(ctx, s.cl, broker.Capabilities{}, deadTopicNamed(name))
	var drift *broker.DriftError
	if errors.As(err, &drift) {
		s.log.WarnContext(ctx, "the dead letter topic differs from its declaration", "error", err)
		return nil
	}
	return err
}
