package config

import (
	"strings"
	"testing"
)

func TestRetentionOfTheOutboxIsRead(t *testing.T) {
	alone(t)
	c, err := read(t, "outbox: {keep_days: 30, archive_dir: /var/lib/events}")
	if err != nil || *c.Outbox.KeepDays != 30 || c.Outbox.ArchiveDir != "/var/lib/events" || c.Outbox.Discards() || c.Check() != nil {
		t.Errorf("%v %v %+v", err, c.Check(), c.Outbox)
	}
	for text, discards := range map[string]bool{"outbox: {archive: false}": true, "outbox: {archive: true}": false, "outbox: {}": false} {
		if c, err := read(t, text); err != nil || c.Outbox.Discards() != discards || c.Check() != nil {
			t.Errorf("%s: %v %v %+v", text, err, c.Check(), c.Outbox)
		}
	}
	for text, say := range map[string]string{
		"outbox: {keep_days: 0}":                      "outbox.keep_days 0",
		"outbox: {keep_days: -1}":                     "outbox.keep_days -1",
		"outbox: {keep_days: 99999999}":               "outbox.keep_days",
		"outbox: {archive: false, archive_dir: /var}": "outbox.archive",
	} {
		c, err := read(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want it to say %q", text, err, say)
		}
	}
}
