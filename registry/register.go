package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/sr"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/event"
)

// registerAtOnce bounds the requests of a starting program.
const registerAtOnce = 8

// Register registers each contract under its subject and returns the ids by
// the contracts' fingerprints. A subject without a compatibility level of its
// own is given level first, such as FULL_TRANSITIVE; one that has a level
// keeps it.
//
// The error joins one for each contract that failed: an [IncompatibleError],
// [ErrInvalidSchema] or [ErrUnavailable].
func (c *Client) Register(ctx context.Context, level string, contracts ...*event.Contract) (map[int64]int, error) {
	var want sr.CompatibilityLevel
	if err := want.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("register contracts: %w", err)
	}
	var (
		mu     sync.Mutex
		ids    = make(map[int64]int, len(contracts))
		failed = make([]error, len(contracts))
		g      errgroup.Group
	)
	g.SetLimit(registerAtOnce)
	for i, contract := range contracts {
		g.Go(func() error {
			id, err := c.register(ctx, want, contract)
			mu.Lock()
			defer mu.Unlock()
			ids[contract.Fingerprint], failed[i] = id, err
			return nil
		})
	}
	_ = g.Wait() // each failure is in failed
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	return ids, nil
}

func (c *Client) register(ctx context.Context, level sr.CompatibilityLevel, contract *event.Contract) (int, error) {
	subject := contract.Subject()
	// Before the first version, so that no incompatible second one slips in
	// between.
	if err := c.ensureLevel(ctx, subject, level); err != nil {
		return 0, err
	}
	return c.RegisterText(ctx, subject, contract.Text)
}

func (c *Client) ensureLevel(ctx context.Context, subject string, level sr.CompatibilityLevel) error {
	err := c.sr.Compatibility(ctx, subject)[0].Err
	if err == nil {
		return nil
	}
	doing := fmt.Sprintf("set compatibility of subject %q", subject)
	if answer := verdict(err); answer == nil || answer.StatusCode != http.StatusNotFound {
		return unavailable(doing, err)
	}
	if err := c.sr.SetCompatibility(ctx, sr.SetCompatibility{Level: level}, subject)[0].Err; err != nil {
		if verdict(err) != nil {
			return fmt.Errorf("%s to %s: %w", doing, level, err)
		}
		return unavailable(doing, err)
	}
	return nil
}

// RegisterText registers an Avro schema under subject and returns its id; one
// that is registered already keeps its id. The error is an
// [IncompatibleError], [ErrInvalidSchema] or [ErrUnavailable].
func (c *Client) RegisterText(ctx context.Context, subject, text string) (int, error) {
	schema := sr.Schema{Schema: text}
	id, err := c.sr.RegisterSchema(ctx, subject, schema, -1, -1)
	if err == nil {
		return id, nil
	}
	doing := fmt.Sprintf("register subject %q", subject)
	answer := verdict(err)
	switch {
	case answer == nil:
		return 0, unavailable(doing, err)
	case answer.StatusCode == http.StatusConflict:
		return 0, &IncompatibleError{Subject: subject, Reasons: c.reasons(ctx, subject, schema, answer)}
	}
	if err := refused(doing, text, answer); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("%s: %w", doing, err)
}

// reasons asks why a schema was refused, one reason a place. Registries differ
// in how much the refusal itself says; where the question is not understood,
// the refusal must do.
func (c *Client) reasons(ctx context.Context, subject string, schema sr.Schema, refusal *sr.ResponseError) []string {
	const allVersions = -2
	ctx = sr.WithParams(ctx, sr.Verbose)
	result, err := c.sr.CheckCompatibility(ctx, subject, allVersions, schema)
	if err != nil || result.Is || len(result.Messages) == 0 {
		return []string{refusal.Error()}
	}
	slices.Sort(result.Messages)
	return slices.Compact(result.Messages)
}
