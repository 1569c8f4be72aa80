package config

import (
	"strings"
	"testing"
	"time"
)

func TestAlertsAreReadFromTheFile(t *testing.T) {
	alone(t)
	c, err := read(t, `
lag: {every: 2s, late: 1m}
alerts:
  rules:
    - {name: behind, when: time lag > 2m for 5m, severity: critical, groups: [billing]}
    - {name: promise, objective: 99% of the time under 30s over 30d}
  webhook: {url: https://hooks.example/a, headers: {Authorization: Bearer x}}
scale:
  drain: 2m
  groups: {billing: {max: 4}}
`)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := c.Alerts.ParsedRules()
	if err != nil || len(rules) != 2 || rules[0].Severity != "critical" || rules[1].Severity != "warning" || rules[0].Groups[0] != "billing" {
		t.Errorf("%+v %v", rules, err)
	}
	if c.Lag.Every != 2*time.Second || c.Alerts.Webhook.Headers["Authorization"] != "Bearer x" || c.Scale.Drain != 2*time.Minute || c.Scale.Groups["billing"].Max != 4 {
		t.Errorf("%+v", c)
	}
}

func TestAlertsThatCannotBeMeantAreRefused(t *testing.T) {
	alone(t)
	for text, say := range map[string]string{
		"alerts: {rules: [{name: a, when: time lag > 30}]}":                     `alerts.rules[0] "a": column 12`,
		"alerts: {rules: [{when: stalled}]}":                                    "want name",
		"alerts: {rules: [{name: a}]}":                                          "want when",
		"alerts: {rules: [{name: a, when: stalled}, {name: a, when: rewound}]}": "of this name already",
		"alerts: {rules: [{name: a, whem: stalled}]}":                           "no setting whem",
		"alerts: {webhook: {url: hooks.example}}":                               "alerts.webhook.url",
		"lag: {late: soon}":                                                     "line 1",
		"lag: {late: -1s}":                                                      "above zero",
		"scale: {min: 3, max: 2}":                                               "max not below min",
		"scale: {groups: {billing: {min: 3, max: 2}}}":                          "scale.groups.billing",
		"scale: {workers: -1}":                                                  "scale.workers: want 1 to 1024",
		"scale: {workers: many}":                                                "want a number, or {min",
		"scale: {workers: {min: 2}}":                                            "want max",
		"scale: {workers: {max: 4, goal: 1m}}":                                  "no setting goal in workers",
		"scale: {workers: {max: four}}":                                         "line 1",
		"scale: {workers: {min: 0, max: 4}}":                                    "want 1 to 1024",
		"scale: {workers: {max: 4, every: 1ms}}":                                "want 1s to 1h",
		"scale: {groups: {analytics: {workers: {min: 4, max: 2}}}}":             "scale.groups.analytics.workers: {min: 4, max: 2}",
	} {
		c, err := read(t, text)
		if err == nil {
			err = c.Check()
		}
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v, want it to say %q", text, err, say)
		}
	}
}

func TestWorkersAreANumberOrBounds(t *testing.T) {
	alone(t)
	c, err := read(t, `
scale:
  workers: 16
  groups: {analytics: {drain: 30s, workers: {min: 2, max: 20, every: 5s}}, billing: {workers: {max: 4}}, audit: {}}
`)
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Workers{
		"analytics": {Follow: true, Min: 2, Max: 20, Every: 5 * time.Second}, "billing": {Follow: true, Min: 1, Max: 4}, "audit": {},
	} {
		if got := c.Scale.Groups[name].Workers; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if c.Scale.Workers != (Workers{Now: 16}) {
		t.Errorf("%+v", c.Scale.Workers)
	}
}
