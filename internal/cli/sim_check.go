package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// check asks the API about each key before anything is played: a simulator
// goes on through refusals and outages, and would tell of a wrong key in its
// last line only.
func (o *simOptions) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for i, key := range o.keys.Merchants[:o.cfg.Merchants] {
		if err := o.ask(ctx, "/v1/me", key, fmt.Sprintf("the %s --key", nth(i+1))); err != nil {
			return err
		}
	}
	for i := range max(o.cfg.Couriers, 0) {
		if err := o.ask(ctx, "/v1/courier", o.keys.Couriers[i], fmt.Sprintf("the %s --courier-key", nth(i+1))); err != nil {
			return err
		}
	}
	return nil
}

func (o *simOptions) ask(ctx context.Context, path, key, which string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(o.url, "/")+path, nil)
	if err != nil {
		return usagef("--url %q: want http://HOST:PORT", o.url)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		var why *url.Error
		if errors.As(err, &why) {
			err = why.Err
		}
		return fmt.Errorf("cannot reach %s: %w: is a waybill with the role api running there?", o.url, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	_ = res.Body.Close()
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return fmt.Errorf("%s opens nothing at %s (%s): give one that is good, as `waybill tenant create NAME` or `waybill courier add NAME --tenant TENANT` prints it", which, o.url, res.Status)
	}
	return nil
}

func nth(n int) string {
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}
