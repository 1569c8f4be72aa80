package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhereAnalyticsAreKept(t *testing.T) {
	read := func(text, env string) (Config, error) {
		path := filepath.Join(t.TempDir(), "waybill.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(EnvFile, path)
		t.Setenv(EnvClickHouse, env)
		c := Default()
		if err := c.FromEnvironment(); err != nil {
			return c, err
		}
		return c, c.Check()
	}
	for text, want := range map[string]string{
		"":                              "",
		"analytics: {sink: postgres}":   "",
		"analytics: {sink: oracle}":     `want postgres or clickhouse`,
		"analytics: {sink: clickhouse}": EnvClickHouse,
		"analytics: {keep_days: -1}":    "keep_days",
		"analytics: {sink: clickhouse, clickhouse: {url: 'http://x:1/y'}}": "",
	} {
		_, err := read(text, "")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	c, err := read("analytics: {sink: clickhouse, clickhouse: {url: 'http://file/y'}}", "http://u:geheim@environment/y")
	if err != nil || c.Analytics.ClickHouse.URL != "http://u:geheim@environment/y" {
		t.Errorf("the environment does not win: %v", err)
	}
	if _, err := read("analytics: {sink: oracle}", "http://u:geheim@environment/y"); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
}
