package config

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/waybillhq/waybill/alert"
)

// Lag is how groups are watched. What is zero has its default.
type Lag struct {
	Every      time.Duration `yaml:"every"`            // between looks; 5s
	Late       time.Duration `yaml:"late"`             // time behind that is warned of; 30s
	StallAfter time.Duration `yaml:"stall_after"`      // without movement while behind; 1m
	Reads      int           `yaml:"reads_per_second"` // of records, for their times; 200
}

// Alerts is what is told, and to whom.
type Alerts struct {
	Off          bool        `yaml:"off"`
	Rules        []AlertRule `yaml:"rules"` // instead of the defaults
	Webhook      *Endpoint   `yaml:"webhook"`
	Alertmanager *Endpoint   `yaml:"alertmanager"`
}

// AlertRule is a sentence and whom it is about.
type AlertRule struct {
	Name      string   `yaml:"name"`
	When      string   `yaml:"when"`      // see alert.Parse
	Objective string   `yaml:"objective"` // or this, of the form for it
	Severity  string   `yaml:"severity"`  // warning if empty
	Groups    []string `yaml:"groups"`    // all if empty
}

// Endpoint is where alerts are posted.
type Endpoint struct {
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
}

// Scale is what a group should be large enough for.
type Scale struct {
	ScaleGoal `yaml:",inline"`
	Groups    map[string]ScaleGoal `yaml:"groups"` // instead, of single groups
}

// ScaleGoal is of one group. What is zero has its default.
type ScaleGoal struct {
	Drain   time.Duration `yaml:"drain"`   // how soon a lag shall be gone; 1m
	Min     int           `yaml:"min"`     // replicas; 1
	Max     int           `yaml:"max"`     // as many as there are partitions
	Workers Workers       `yaml:"workers"` // of each replica: how many there are, 8, or their bounds
}

// ParsedRules are the rules; nil if none are configured, which means the
// defaults.
func (a *Alerts) ParsedRules() ([]alert.Rule, error) {
	var out []alert.Rule
	var errs []error
	seen := map[string]bool{}
	for i, r := range a.Rules {
		say := func(err error) { errs = append(errs, fmt.Errorf("alerts.rules[%d] %q: %w", i, r.Name, err)) }
		switch {
		case r.Name == "":
			say(errors.New("want name: what the alert is called"))
		case seen[r.Name]:
			say(errors.New("there is one of this name already: an alert is known by it"))
		case (r.When == "") == (r.Objective == ""):
			say(errors.New("want when, as in when: stalled, or objective, as in objective: 99% of the time under 30s over 30d"))
		}
		seen[r.Name] = true
		text := r.When + r.Objective
		rule, err := alert.Parse(text)
		if err != nil && text != "" {
			say(err)
		}
		rule.Name, rule.Severity, rule.Groups = r.Name, r.Severity, r.Groups
		if rule.Severity == "" {
			rule.Severity = "warning"
		}
		out = append(out, rule)
	}
	return out, errors.Join(errs...)
}

func (c *Config) checkMonitor() error {
	var errs []error
	if c.Lag.Every < 0 || c.Lag.Late < 0 || c.Lag.StallAfter < 0 || c.Lag.Reads < 0 {
		errs = append(errs, errors.New("lag: want times and numbers above zero, or leave them out"))
	}
	_, err := c.Alerts.ParsedRules()
	errs = append(errs, err, c.Alerts.Webhook.check("alerts.webhook"), c.Alerts.Alertmanager.check("alerts.alertmanager"))
	goals := map[string]ScaleGoal{"scale": c.Scale.ScaleGoal}
	for name, g := range c.Scale.Groups {
		goals["scale.groups."+name] = g
	}
	for name, g := range goals {
		if g.Drain < 0 || g.Min < 0 || g.Max < 0 || g.Max > 0 && g.Max < g.Min {
			errs = append(errs, fmt.Errorf("%s: want drain, min and max above zero, and max not below min", name))
		}
		if err := g.Workers.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s.%w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (e *Endpoint) check(name string) error {
	if e == nil {
		return nil
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%s.url: want http://HOST/PATH or https://HOST/PATH", name) // not quoted: it may hold a secret
	}
	return nil
}
