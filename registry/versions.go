package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
)

// Version is a registered schema of a subject.
type Version struct {
	Number int
	ID     int
	Text   string
	Schema *avro.Schema
}

// maxVersions bounds what is fetched of one subject.
const maxVersions = 10_000

// Versions are the versions of a subject, the oldest first; none if there is
// no such subject. Deleted ones are not among them. The error is
// [ErrInvalidSchema] or [ErrUnavailable].
func (c *Client) Versions(ctx context.Context, subject string) ([]Version, error) {
	numbers, err := c.sr.SubjectVersions(ctx, subject)
	if err != nil {
		if a := verdict(err); a != nil && a.StatusCode == http.StatusNotFound {
			return nil, nil
		}
		return nil, unavailable(fmt.Sprintf("list versions of subject %q", subject), err)
	}
	if len(numbers) > maxVersions {
		return nil, fmt.Errorf("subject %q has %d versions; more than %d are not looked at", subject, len(numbers), maxVersions)
	}
	out := make([]Version, 0, len(numbers))
	for _, n := range numbers {
		v, err := c.version(ctx, subject, n)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (c *Client) version(ctx context.Context, subject string, n int) (Version, error) {
	doing := fmt.Sprintf("fetch version %d of subject %q", n, subject)
	found, err := c.sr.SchemaByVersion(ctx, subject, n)
	if err != nil {
		return Version{}, unavailable(doing, err)
	}
	v := Version{Number: found.Version, ID: found.ID, Text: found.Schema.Schema}
	if v.Schema, err = c.parse(ctx, found.Schema); err != nil {
		return v, fmt.Errorf("%s: %w", doing, err)
	}
	return v, nil
}

// Level is the compatibility level that holds for a subject: its own, or else
// the registry's.
func (c *Client) Level(ctx context.Context, subject string) (string, error) {
	r := c.sr.Compatibility(sr.WithParams(ctx, sr.DefaultToGlobal), subject)[0]
	if r.Err != nil {
		return "", unavailable(fmt.Sprintf("ask for the compatibility of subject %q", subject), r.Err)
	}
	return r.Level.String(), nil
}

// Registered tells whether a subject has this very schema already. The error is
// [ErrInvalidSchema] or [ErrUnavailable].
func (c *Client) Registered(ctx context.Context, subject, text string) (bool, error) {
	_, err := c.sr.LookupSchema(ctx, subject, sr.Schema{Schema: text})
	if err == nil {
		return true, nil
	}
	doing, answer := fmt.Sprintf("look the schema up under subject %q", subject), verdict(err)
	if answer != nil && answer.StatusCode == http.StatusNotFound {
		return false, nil
	}
	if err := refused(doing, text, answer); err != nil {
		return false, err
	}
	return false, unavailable(doing, err)
}

// Latest is a subject's latest version, and the numbers of all it has. With
// [ErrInvalidSchema], which is of a schema in another language too, all but the
// parsed schema is there.
func (c *Client) Latest(ctx context.Context, subject string) (numbers []int, latest Version, err error) {
	numbers, err = c.sr.SubjectVersions(ctx, subject)
	if err == nil && len(numbers) > 0 {
		latest, err = c.version(ctx, subject, numbers[len(numbers)-1])
		return numbers, latest, err
	}
	if err == nil {
		err = errNoVersions
	}
	return nil, Version{}, unavailable(fmt.Sprintf("list versions of subject %q", subject), err)
}

var errNoVersions = errors.New("it has none")
