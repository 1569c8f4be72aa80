package config

import (
	"errors"
	"fmt"
	"time"
)

// Queue is which queues there are from the start, and which topics go into
// them.
type Queue struct {
	Queues []QueueSettings `yaml:"queues"`
	Feeds  []QueueFeed     `yaml:"feeds"`
}

// QueueSettings is one queue. What is left out is the package's default.
type QueueSettings struct {
	Tenant        string        `yaml:"tenant"` // the system's own if empty
	Name          string        `yaml:"name"`
	Lease         time.Duration `yaml:"lease"`
	MaxDeliveries int           `yaml:"max_deliveries"`
	TTL           time.Duration `yaml:"ttl"`
	MaxLength     int64         `yaml:"max_length"`
	Dedupe        time.Duration `yaml:"dedupe"`
	KeepDead      time.Duration `yaml:"keep_dead"`
	DeadLetter    string        `yaml:"dead_letter"` // named before
}

// QueueFeed is one topic into one queue.
type QueueFeed struct {
	Tenant    string   `yaml:"tenant"` // of the queue
	Queue     string   `yaml:"queue"`
	Topic     string   `yaml:"topic"`
	Types     []string `yaml:"types"`      // of events; all if there are none
	JSON      bool     `yaml:"json"`       // bodies as JSON
	KeyGroups bool     `yaml:"key_groups"` // one record of a key at a time
}

func (q Queue) check() error {
	var errs []error
	for i, s := range q.Queues {
		if s.Name == "" {
			errs = append(errs, fmt.Errorf("queue.queues[%d]: want name", i))
		}
	}
	for i, f := range q.Feeds {
		if f.Queue == "" || f.Topic == "" {
			errs = append(errs, fmt.Errorf("queue.feeds[%d]: want queue and topic: what goes where", i))
		}
	}
	return errors.Join(errs...)
}
