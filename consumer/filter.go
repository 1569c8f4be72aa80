package consumer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// Filter chooses records by their headers. What is left empty admits all.
type Filter struct {
	// Types are patterns of which one must match the event's type: words
	// between dots, where * stands for one word, and > at the end for one or
	// more: logistica.orders.>, *.orders.OrderCreated.
	Types   []string
	Tenants []string          // one of which is the event's
	Headers map[string]string // all of which the record has, with these values
}

// check finds patterns that match nothing.
func (f Filter) check() error {
	for _, p := range f.Types {
		words := strings.Split(p, ".")
		for i, w := range words {
			if w == "" || len(w) > 1 && strings.ContainsAny(w, "*>") || w == ">" && i < len(words)-1 {
				return fmt.Errorf("type pattern %q: want words between dots, * for one word, > only at the end", p)
			}
		}
	}
	return nil
}

func (f Filter) admits(rec *kgo.Record) bool {
	if len(f.Types) > 0 {
		typ := recordType(rec)
		if !slices.ContainsFunc(f.Types, func(p string) bool { return matches(p, typ) }) {
			return false
		}
	}
	if len(f.Tenants) > 0 && !slices.Contains(f.Tenants, header(rec, event.HeaderTenant)) {
		return false
	}
	for k, v := range f.Headers {
		if !slices.ContainsFunc(rec.Headers, func(h kgo.RecordHeader) bool { return h.Key == k && string(h.Value) == v }) {
			return false
		}
	}
	return true
}

func matches(pattern, typ string) bool {
	for {
		p, morePattern, goesOn := strings.Cut(pattern, ".")
		word, more, has := strings.Cut(typ, ".")
		switch {
		case p == ">":
			return typ != ""
		case p != "*" && p != word, word == "":
			return false
		case !goesOn || !has:
			return goesOn == has
		}
		pattern, typ = morePattern, more
	}
}

func recordType(rec *kgo.Record) string { return header(rec, event.HeaderType) }

// header is the first of that name, "" if there is none.
func header(rec *kgo.Record, name string) string {
	for i := range rec.Headers {
		if rec.Headers[i].Key == name {
			return string(rec.Headers[i].Value)
		}
	}
	return ""
}
