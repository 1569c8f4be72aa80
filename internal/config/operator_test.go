package config

import (
	"strings"
	"testing"
)

func TestAnOperatorsKeyThatCouldBeGuessedIsRefusedAndNotQuoted(t *testing.T) {
	for key, ok := range map[string]bool{"": true, "hunter2": false, "0123456789abcdef": true} {
		c := Default()
		t.Setenv(EnvOperatorKey, key)
		if err := c.FromEnvironment(); err != nil {
			t.Fatal(err)
		}
		err := c.Check()
		if (err == nil) != ok || c.OperatorKey != key {
			t.Errorf("%q: %v", key, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Error("the key is quoted")
		}
	}
}
