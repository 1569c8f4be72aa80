package config

import (
	"errors"
	"fmt"
	"strings"
)

// CDC is which tables' changes are published.
type CDC struct {
	// Off publishes none.
	Off bool `yaml:"off"`
	// Tables are those of the product if there are none here.
	Tables []CDCTable `yaml:"tables"`
}

// CDCTable is one table.
type CDCTable struct {
	Table        string   `yaml:"table"`   // schema.table
	Topic        string   `yaml:"topic"`   // its own
	Columns      []string `yaml:"columns"` // that may be published; ["*"] is all
	TenantColumn string   `yaml:"tenant_column"`
}

// Split gives schema and name.
func (t CDCTable) Split() (schema, name string) {
	schema, name, _ = strings.Cut(t.Table, ".")
	return schema, name
}

func (c CDC) check() error {
	var errs []error
	for i, t := range c.Tables {
		say := func(what string) {
			errs = append(errs, fmt.Errorf("cdc.tables[%d] %q: %s", i, t.Table, what))
		}
		if schema, name := t.Split(); schema == "" || name == "" {
			say("want table: schema.table")
		}
		if t.Topic == "" {
			say("want topic: where its changes go")
		}
		if len(t.Columns) == 0 {
			say(`want columns: the list of those that may be published, or ["*"] for all`)
		}
	}
	return errors.Join(errs...)
}
