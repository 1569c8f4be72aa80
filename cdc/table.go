package cdc

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/broker"
)

// AllColumns, as the only entry of an allow-list, publishes every column, also
// those that are added later.
const AllColumns = "*"

// Table is a table whose changes are published, and what of them.
type Table struct {
	Schema string
	Name   string
	// Columns is the allow-list: no other column's value or name leaves the
	// process. The primary key must be among them. A name may be listed before
	// there is such a column. [AllColumns] stands for all.
	Columns []string
	// Topic is where the changes go; it is this table's alone.
	Topic string
	// TenantColumn holds whose data a row is, for the event's envelope; none if
	// empty. Its value is published there though it be on no allow-list.
	TenantColumn string
}

func (t Table) String() string { return t.Schema + "." + t.Name }

func (t Table) sql() string { return pgx.Identifier{t.Schema, t.Name}.Sanitize() }

func (t Table) allows(column string) bool {
	return len(t.Columns) == 1 && t.Columns[0] == AllColumns || slices.Contains(t.Columns, column)
}

func (t Table) check() error {
	switch {
	case t.Schema == "" || t.Name == "":
		return fmt.Errorf("table %q: want schema and name", t)
	case t.Topic == "":
		return fmt.Errorf("table %s: want a topic", t)
	case len(t.Columns) == 0:
		return fmt.Errorf("table %s: want an allow-list of columns, or %q for all", t, AllColumns)
	case len(t.Columns) > 1 && slices.Contains(t.Columns, AllColumns):
		return fmt.Errorf("table %s: %q means all columns and stands alone", t, AllColumns)
	}
	return nil
}

func checkTables(tables []Table) error {
	var errs []error
	names, topics := map[string]bool{}, map[string]string{}
	for _, t := range tables {
		errs = append(errs, t.check())
		if names[t.String()] {
			errs = append(errs, fmt.Errorf("table %s is listed twice", t))
		}
		names[t.String()] = true
		if other, taken := topics[t.Topic]; taken && other != t.String() {
			// Keys of two tables would overwrite each other.
			errs = append(errs, fmt.Errorf("topic %s: want one table, got %s and %s", t.Topic, other, t))
		}
		topics[t.Topic] = t.String()
	}
	return errors.Join(errs...)
}

// Topics declares the topic of each table: compacted, so that it ends up as the
// table with a record for each row.
func Topics(partitions int32, tables ...Table) []broker.Topic {
	topics := make([]broker.Topic, len(tables))
	for i, t := range tables {
		topics[i] = broker.Topic{Name: t.Topic, Partitions: partitions, Compact: true}
	}
	return topics
}

// SlotName is the default slot of a database. Slots belong to the whole
// server, so that the database's name must be in it.
func SlotName(database string) string {
	name := "waybill_cdc_" + strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		}
		return '_'
	}, database)
	return name[:min(len(name), 63)] // the server's limit
}
