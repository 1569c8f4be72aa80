package cdc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// missingKeys gives those of keys that the table has no row of.
func missingKeys(ctx context.Context, conn *pgx.Conn, w *watched, keys [][]byte) ([][]byte, error) {
	var missing, good [][]byte
	columns := make([][]string, len(w.facts.keys))
	for _, key := range keys {
		parts, ok := splitKey(key, len(columns))
		if !ok || !utf8.Valid(key) || strings.ContainsRune(string(key), 0) {
			missing = append(missing, key) // no row has such a key
			continue
		}
		good = append(good, key)
		for i, p := range parts {
			columns[i] = append(columns[i], string(p))
		}
	}
	places, err := lookUp(ctx, conn, w, columns)
	if noSuchValue(err) && len(good) > 0 {
		places, err = lookUpEach(ctx, conn, w, columns, len(good))
	}
	for _, p := range places {
		missing = append(missing, good[p-1])
	}
	return missing, err
}

// lookUp gives the places, from 1 on, of keys without a row. Keys are given
// column by column.
func lookUp(ctx context.Context, conn *pgx.Conn, w *watched, columns [][]string) (places []int64, err error) {
	if len(columns[0]) == 0 {
		return nil, nil
	}
	args, arrays, names, where := []any{}, []string{}, []string{}, []string{}
	for i, k := range w.facts.keys {
		args = append(args, columns[i])
		arrays = append(arrays, fmt.Sprintf("$%d::text[]", i+1))
		names = append(names, fmt.Sprintf("k%d", i))
		// Found by the key's index, and the same in print: 1.0 is 1.00 to the
		// table and another key to the topic.
		where = append(where, fmt.Sprintf("t.%[1]s = given.k%[2]d::%[3]s AND format('%%s', t.%[1]s) = given.k%[2]d", quote(k), i, w.facts.keyTypes[i]))
	}
	sql := fmt.Sprintf("SELECT place FROM unnest(%s) WITH ORDINALITY AS given (%s, place) WHERE NOT EXISTS (SELECT FROM %s t WHERE %s)",
		strings.Join(arrays, ", "), strings.Join(names, ", "), w.from(), strings.Join(where, " AND "))
	if _, err := conn.Exec(ctx, "SAVEPOINT look_up"); err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, sql, args...)
	if err == nil {
		places, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	if err != nil {
		_, undo := conn.Exec(ctx, "ROLLBACK TO look_up")
		return nil, errors.Join(err, undo)
	}
	return places, nil
}

// noSuchValue tells of a text that is no value of the key's type, or one that
// its domain does not allow.
func noSuchValue(err error) bool {
	const checkViolation = "23514"
	var server *pgconn.PgError
	return errors.As(err, &server) && (strings.HasPrefix(server.Code, "22") || server.Code == checkViolation)
}

// lookUpEach looks up keys one by one, where one of them is no value of the
// key's type: of a time when that was another one.
func lookUpEach(ctx context.Context, conn *pgx.Conn, w *watched, columns [][]string, n int) (places []int64, err error) {
	for i := range n {
		one := make([][]string, len(columns))
		for c := range columns {
			one[c] = columns[c][i : i+1]
		}
		gone, err := lookUp(ctx, conn, w, one)
		if noSuchValue(err) {
			gone, err = []int64{1}, nil
		}
		if err != nil {
			return nil, err
		}
		if len(gone) > 0 {
			places = append(places, int64(i+1))
		}
	}
	return places, nil
}
