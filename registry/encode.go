package registry

import (
	"context"
	"fmt"
	"time"
)

// latestFor is how long the latest version of a subject is trusted to be the
// latest: long enough to send a file of messages, short enough for a person
// who registers a new one.
const latestFor = 5 * time.Second

type latest struct {
	*written
	until time.Time
}

// EncodeJSON encodes a person's JSON message with the latest schema of
// subject, in the wire format. Missing fields take their defaults; a field the
// schema does not have is refused, since dropping it in silence would lose
// what was meant. Times may be RFC 3339 strings.
//
// The error is an [UnknownSubjectError], [ErrMalformed] naming the field, or
// [ErrUnavailable].
func (c *Client) EncodeJSON(ctx context.Context, subject string, message []byte) ([]byte, error) {
	w, err := c.latestOf(ctx, subject)
	if err != nil {
		return nil, err
	}
	v, err := readMessage(w.schema, message)
	if err != nil {
		return nil, fmt.Errorf("message for subject %q %w %s: %w", subject, ErrMalformed, w.Name, err)
	}
	value, err := w.schema.AppendEncode(AppendHeader(nil, w.ID), v)
	if err != nil {
		return nil, fmt.Errorf("message for subject %q %w %s: %w", subject, ErrMalformed, w.Name, err)
	}
	return value, nil
}

func (c *Client) latestOf(ctx context.Context, subject string) (*written, error) {
	if v, ok := c.latest.Load(subject); ok && time.Now().Before(v.(latest).until) {
		return v.(latest).written, nil
	}
	found, err := c.sr.SchemaByVersion(ctx, subject, -1)
	if err != nil {
		return nil, c.missing(subject, err)
	}
	schema, err := c.parse(ctx, found.Schema)
	if err != nil {
		return nil, fmt.Errorf("latest schema of subject %q: %w", subject, err)
	}
	w := newWritten(found.ID, schema)
	c.latest.Store(subject, latest{w, time.Now().Add(latestFor)})
	return w, nil
}

func (c *Client) missing(subject string, err error) error {
	if answer := verdict(err); answer != nil {
		switch answer.ErrorCode {
		case codeSubjectNotFound, codeVersionNotFound, codeSoftDeleted:
			return &UnknownSubjectError{Subject: subject, Registry: c.url}
		}
	}
	return unavailable(fmt.Sprintf("fetch latest schema of subject %q", subject), err)
}
