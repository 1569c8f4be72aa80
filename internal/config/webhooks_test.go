package config

import (
	"strings"
	"testing"
)

func TestWebhookKeysAndNetworksAreRead(t *testing.T) {
	alone(t)
	const key = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
	c, err := read(t, "webhooks: {keys: ["+key+"], allow: [10.0.0.0/8], deny: [198.51.100.0/24], http: true}")
	if err != nil {
		t.Fatal(err)
	}
	g, err := c.Webhooks.Guard()
	if err != nil || len(g.Allow) != 1 || len(g.Deny) != 1 || !g.HTTP {
		t.Errorf("%+v %v", g, err)
	}
	if keys, err := c.Webhooks.SealKeys(); err != nil || len(keys) != 1 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	t.Setenv(EnvWebhookKeys, key+", "+key)
	t.Setenv(EnvWebhookAllow, "127.0.0.0/8")
	if err := c.FromEnvironment(); err != nil {
		t.Fatal(err)
	}
	if g, err = c.Webhooks.Guard(); err != nil || g.Allow[0].String() != "127.0.0.0/8" || len(c.Webhooks.Keys) != 2 {
		t.Errorf("the environment does not win over the file: %+v %v", c.Webhooks, err)
	}
	if g, err := (Webhooks{}).Guard(); err != nil || g.HTTP || len(g.Allow) > 0 {
		t.Errorf("by itself it lets through %+v, %v", g, err)
	}
}

func TestWebhookSettingsThatCannotBeMeantAreRefused(t *testing.T) {
	alone(t)
	for text, want := range map[string]string{
		"webhooks: {keys: [hunter2hunter2]}":  "openssl rand -base64 32",
		"webhooks: {allow: [localhost]}":      "127.0.0.0/8",
		"webhooks: {deny: ['10.0.0.0']}":      "webhooks.deny",
		"webhooks: {http: sometimes}":         "true or false",
		"webhooks: {endpoints: [a]}":          "no setting endpoints here",
		"webhooks: {keys: hunter2hunter2abc}": "want a list",
	} {
		c, err := read(t, text)
		if err == nil {
			err = c.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want it to say %q and no key", text, err, want)
		}
	}
}
