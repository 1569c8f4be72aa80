package cdc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/pg/wal"
)

// chunk is what was read of a table in one transaction, on its way to its
// watermark in the stream.
type chunk struct {
	token  string   // names the watermark; nobody else can know it
	table  *watched // nil in a fence, which has nothing but its place
	shape  *shape
	at     visibility
	items  []item
	last   []string      // of the keys, column by column
	placed chan struct{} // closed once the broker has acknowledged all of it
	void   bool          // it was passed over: the table has changed. Before placed is closed.
}

type item struct {
	key    []byte
	change change
}

type field = wal.Column

func newChunk(w *watched, at visibility) *chunk {
	return &chunk{token: rand.Text(), table: w, at: at, placed: make(chan struct{})}
}

// chunkReader reads a table piece by piece over a connection of its own. It
// speaks the protocol itself since values are wanted as the server prints them.
type chunkReader struct {
	conn        *pgconn.PgConn
	table       *watched
	rows, bytes int // bounds
}

// read gives the rows after a key, as one state of the database has them. The
// transaction stays open; it is rolled back if there is an error or no row, in
// which case the chunk is nil.
func (r *chunkReader) read(ctx context.Context, after []string, shapeOf func([]field) (*shape, error)) (c *chunk, err error) {
	v, err := begin(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	defer func() {
		if c == nil {
			err = errors.Join(err, rollback(ctx, r.conn))
		}
	}()
	params := make([][]byte, len(after))
	for i, k := range after {
		params[i] = []byte(k)
	}
	if _, err := r.conn.ExecParams(ctx, r.query(len(after) > 0), params, nil, nil, nil).Close(); err != nil {
		return nil, err
	}
	rows, cols, err := r.fetch(ctx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	sh, err := shapeOf(cols)
	if err != nil {
		return nil, err
	}
	made := newChunk(r.table, v)
	made.shape = sh
	for _, row := range rows {
		key, ok := sh.appendKey(nil, row)
		if !ok {
			return nil, fmt.Errorf("a row has null in its primary key")
		}
		made.items = append(made.items, item{key, change{op: opRead, after: row}})
	}
	for _, at := range sh.keys {
		made.last = append(made.last, string(rows[len(rows)-1][at].Data))
	}
	return made, nil
}

// begin opens a transaction that sees one state of the database.
func begin(ctx context.Context, conn *pgconn.PgConn) (visibility, error) {
	results, err := conn.Exec(ctx, beginSnapshot).ReadAll()
	if err != nil {
		return visibility{}, err
	}
	v, err := parseVisibility(string(results[len(results)-1].Rows[0][0]))
	if err != nil {
		err = errors.Join(err, rollback(ctx, conn))
	}
	return v, err
}

func rollback(ctx context.Context, conn *pgconn.PgConn) error {
	if conn.IsClosed() {
		return nil
	}
	_, err := conn.Exec(ctx, "ROLLBACK").ReadAll()
	return err
}

// query opens a cursor on the next rows.
func (r *chunkReader) query(after bool) string {
	f := r.table.facts
	columns := make([]string, 0, len(f.columns))
	for _, c := range f.columns {
		if r.table.allows(c) || c == r.table.TenantColumn {
			columns = append(columns, quote(c))
		}
	}
	keys, params := make([]string, len(f.keys)), make([]string, len(f.keys))
	for i, k := range f.keys {
		keys[i] = quote(k)
		params[i] = fmt.Sprintf("$%d::text::%s", i+1, f.keyTypes[i])
	}
	where := ""
	if after {
		where = " WHERE (" + strings.Join(keys, ", ") + ") > (" + strings.Join(params, ", ") + ")"
	}
	return fmt.Sprintf("DECLARE chunk NO SCROLL CURSOR FOR SELECT %s FROM %s%s ORDER BY %s LIMIT %d",
		strings.Join(columns, ", "), r.table.from(), where, strings.Join(keys, ", "), r.rows)
}

// from is the table as a query names it.
func (w *watched) from() string { return only(w.Table, w.facts.kind) }

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// rowsAtOnce bounds the rows by whose size a chunk may exceed its bytes: what is
// asked of the cursor at once comes.
const rowsAtOnce = 50

// fetch reads the cursor until there are enough rows or bytes.
func (r *chunkReader) fetch(ctx context.Context) (rows [][]wal.Value, cols []field, err error) {
	size, largest := 0, r.bytes/4 // unless it shows: a few rows at first
	for len(rows) < r.rows && size < r.bytes {
		ask := min(r.rows-len(rows), rowsAtOnce, max(1, (r.bytes-size)/max(1, largest)))
		got := r.conn.ExecParams(ctx, fmt.Sprintf("FETCH %d FROM chunk", ask), nil, nil, nil, nil)
		if cols == nil {
			cols = fields(got)
		}
		n := 0
		if len(rows) == 0 {
			largest = 0
		}
		for ; got.NextRow(); n++ {
			row, bytes := copyRow(got.Values())
			rows, size, largest = append(rows, row), size+bytes, max(largest, bytes)
		}
		if _, err := got.Close(); err != nil {
			return nil, nil, err
		}
		if n < ask {
			break
		}
	}
	return rows, cols, nil
}

func fields(r *pgconn.ResultReader) (cols []field) {
	for _, f := range r.FieldDescriptions() {
		cols = append(cols, field{Name: f.Name, Type: f.DataTypeOID, Modifier: f.TypeModifier})
	}
	return cols
}

// describe gives the columns of a chunk of no rows, in an open transaction.
func (r *chunkReader) describe(ctx context.Context) ([]field, error) {
	if _, err := r.conn.ExecParams(ctx, r.query(false), nil, nil, nil, nil).Close(); err != nil {
		return nil, err
	}
	got := r.conn.ExecParams(ctx, "FETCH 1 FROM chunk", nil, nil, nil, nil)
	cols := fields(got)
	_, err := got.Close()
	return cols, err
}

func copyRow(values [][]byte) (row []wal.Value, size int) {
	for _, v := range values {
		size += len(v)
	}
	buf := make([]byte, 0, size)
	row = make([]wal.Value, len(values))
	for i, v := range values {
		if v == nil {
			row[i].Kind = wal.Null
			continue
		}
		buf = append(buf, v...)
		row[i] = wal.Value{Kind: wal.Text, Data: buf[len(buf)-len(v):]}
	}
	return row, size
}
