package config

import (
	"errors"
	"fmt"
)

// EnvOperatorKey names the variable with the key that operators' requests bear.
const EnvOperatorKey = "WAYBILL_OPERATOR_KEY"

// minOperatorKey is what nobody guesses, in bytes.
const minOperatorKey = 16

// checkOperatorKey refuses a key that could be guessed. It does not quote it.
func (c *Config) checkOperatorKey() error {
	if n := len(c.OperatorKey); n > 0 && n < minOperatorKey {
		return fmt.Errorf("%s or operator_key has %d bytes: %w", EnvOperatorKey, n, errShortKey)
	}
	return nil
}

var errShortKey = errors.New("want at least 16, as `openssl rand -hex 16` makes them, or none")
