package feed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/queue"
	"github.com/waybillhq/waybill/registry"
)

// Headers that a message has besides those of its record.
const (
	HeaderPlace = "feed-place" // topic/partition@offset
	HeaderKey   = "feed-key"   // the record's key, if it is text
	HeaderError = "feed-error" // why the body is the record's bytes and no JSON
)

// maxHeaderBytes leaves room for what JSON adds.
const maxHeaderBytes = queue.MaxHeaders / 2

// message is the message of a record, nil for a type that is not asked for. An
// error is the registry's: it could not be asked.
func (f *Feed) message(ctx context.Context, rec *kgo.Record) (*queue.Message, error) {
	m := &queue.Message{Body: rec.Value, ContentType: "application/octet-stream", Headers: map[string]string{}}
	size := 0
	typ := ""
	for _, h := range rec.Headers {
		v := text(string(h.Value))
		switch h.Key {
		case event.HeaderType:
			typ = v
		case event.HeaderContentType:
			m.ContentType = short(v)
		}
		// Headers of a stranger may be of any size; those of the envelope come first.
		if size += len(h.Key) + len(v); h.Key != "" && size <= maxHeaderBytes {
			m.Headers[text(h.Key)] = v
		}
	}
	if len(f.types) > 0 && !f.types[typ] {
		return nil, nil
	}
	place := fmt.Sprintf("%s/%d@%d", rec.Topic, rec.Partition, rec.Offset)
	m.Headers[HeaderPlace], m.DedupeID = place, dedupeID(rec, place)
	if len(rec.Key) > 0 && len(rec.Key) <= 255 {
		m.Headers[HeaderKey] = text(string(rec.Key))
	}
	if f.cfg.KeyGroups {
		m.Group = group(rec.Key)
	}
	if !f.cfg.JSON {
		return m, nil
	}
	_, body, err := f.deps.Decoder.DecodeAny(ctx, rec.Value)
	switch {
	case err == nil:
		m.Body, m.ContentType = body, queue.ContentTypeJSON
	case errors.Is(err, registry.ErrUnavailable), ctx.Err() != nil:
		return nil, err
	default: // its own fault: a worker is told, and has the bytes
		m.Headers[HeaderError] = short(text(err.Error()))
	}
	return m, nil
}

// dedupeID is the event's id, or the record's place if it has none.
func dedupeID(rec *kgo.Record, place string) string {
	env, err := event.ReadHeaders(len(rec.Headers), func(i int) (string, []byte) {
		return rec.Headers[i].Key, rec.Headers[i].Value
	}, rec.Timestamp, place)
	if err != nil {
		return event.ForeignID("", place, rec.Timestamp).String()
	}
	return env.ID.String()
}

// group is a key as a group's name. One that is no text, or long, is named by
// its hash.
func group(key []byte) string {
	if s := string(key); len(s) <= 255 && text(s) == s {
		return s
	}
	sum := sha256.Sum256(key)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func short(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), 255)], "")
}
