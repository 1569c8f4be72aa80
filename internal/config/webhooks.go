package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
)

// Environment variables about webhooks.
const (
	// EnvWebhookKeys has the keys that secrets are sealed with, base64 of 32
	// bytes each, the one that seals first and a comma between.
	EnvWebhookKeys = "WAYBILL_WEBHOOK_KEYS"
	// EnvWebhookAllow has networks that endpoints may be in though they are not
	// public, and by http, a comma between.
	EnvWebhookAllow = "WAYBILL_WEBHOOK_ALLOW"
)

// Webhooks is what endpoints' secrets are sealed with, and where endpoints may be.
type Webhooks struct {
	// Keys seal secrets, the first of them; all open.
	Keys []string `yaml:"keys"`
	// Allow are networks that are let through though they are not public, by http
	// too: of one's own machine, or receivers of one's own.
	Allow []string `yaml:"allow"`
	// Deny are networks that are refused though they are public.
	Deny []string `yaml:"deny"`
	// HTTP lets http through to public addresses.
	HTTP bool `yaml:"http"`
}

// SealKeys are the keys in bytes. The error does not quote them.
func (w Webhooks) SealKeys() (keys [][]byte, err error) {
	for _, text := range w.Keys {
		k, err := seal.ParseKey(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s or webhooks.keys: %w", EnvWebhookKeys, err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// Guard is which addresses are let through.
func (w Webhooks) Guard() (guard.Config, error) {
	allow, err := networks(EnvWebhookAllow+" or webhooks.allow", w.Allow)
	deny, err2 := networks("webhooks.deny", w.Deny)
	return guard.Config{Allow: allow, Deny: deny, HTTP: w.HTTP}, errors.Join(err, err2)
}

func networks(name string, texts []string) (out []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s %q: want a network such as 127.0.0.0/8", name, text)
		}
		out = append(out, p)
	}
	return out, nil
}

func (w Webhooks) check() error {
	_, err := w.SealKeys()
	_, err2 := w.Guard()
	return errors.Join(err, err2)
}
