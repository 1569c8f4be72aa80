package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/bench/topic"
)

// Keys of a backlog.
var Keys = topic.Keys{Writers: 4, PerWriter: 1250}

// Shape is how the events of a backlog are committed, in words.
const Shape = "300-byte bodies, half of the events one a commit and half ten a commit, " +
	"committed by four connections side by side, 5,000 keys"

// fillProcedure writes a writer's events inside the server: an application's
// round trips would take longer than what is measured. Rows and messages are
// those of outbox.Add.
//
// Of the id, Postgres 14 to 17 make no UUIDv7: a random one with the clock put
// before it.
const fillProcedure = `
CREATE SCHEMA bench;
CREATE PROCEDURE bench.fill(messages boolean, writer int, keys int, total bigint, at_most interval,
	topic text, source text, type text, fingerprint bigint, body bytea, INOUT written bigint, INOUT last uuid)
LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	commits bigint := 0;
	now timestamptz := clock_timestamp();
	until timestamptz := now + at_most;
	key text;
	trace text := '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
	-- Of a message, what is the same in all. A column is a length and a value.
	of_topic bytea := int4send(octet_length(topic)) || textsend(topic);
	of_kind bytea := int4send(octet_length(source)) || textsend(source) || int4send(octet_length(type)) || textsend(type);
	of_end bytea := int4send(octet_length(trace)) || textsend(trace) || int4send(8) || int8send(fingerprint) || int4send(length(body)) || body;
BEGIN
	written := 0;
	WHILE written < total AND now < until LOOP
		n := least(total - written, CASE WHEN commits % 11 = 10 THEN 10 ELSE 1 END);
		FOR j IN written .. written + n - 1 LOOP
			now := clock_timestamp();
			key := writer || '-' || j % keys;
			last := (lpad(to_hex((extract(epoch FROM now) * 1000)::bigint), 12, '0') || '7' ||
				substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid;
			IF messages THEN
				PERFORM pg_logical_emit_message(true, 'waybill', '\x0100000010'::bytea || uuid_send(last) || of_topic ||
					int4send(octet_length(key)) || textsend(key) || of_kind || '\x00000008'::bytea || timestamptz_send(now) ||
					'\x00000005'::bytea || 'bench'::bytea || '\x00000008'::bytea || int8send(j / keys + 1) ||
					'\x00000024'::bytea || textsend(last::text) || '\x00000024'::bytea || textsend(last::text) || of_end);
			ELSE
				INSERT INTO waybill.outbox_events (id, topic, subject, source, type, time, tenant, sequence,
					correlation_id, causation_id, trace_parent, schema_fingerprint, body)
				VALUES (last, topic, key, source, type, now, 'bench', j / keys + 1,
					last::text, last::text, trace, fingerprint, body);
			END IF;
		END LOOP;
		COMMIT;
		written := written + n;
		commits := commits + 1;
	END LOOP;
END $$`

// Backlog is what was written to a topic.
type Backlog struct {
	Topic  string
	Events int64
	last   []uuid.UUID // of each writer that wrote any
	end    string      // the WAL's, behind it
}

// Fill commits total events to a topic. They are there for good when it
// returns, but no commit waits for the disk.
func (o *Outbox) Fill(ctx context.Context, name string, total int64) (Backlog, error) {
	return o.write(ctx, name, total, 24*time.Hour, "off")
}

// sustain commits events to a topic durably, as fast as it can, for so long.
func (o *Outbox) sustain(ctx context.Context, name string, length time.Duration) (Backlog, error) {
	return o.write(ctx, name, 1<<40, length, "on")
}

func (o *Outbox) write(ctx context.Context, name string, total int64, atMost time.Duration, wait string) (Backlog, error) {
	c := o.contracts[name]
	body, err := c.Schema.Encode(&parcel{Payload: payload()})
	if err != nil {
		return Backlog{}, err
	}
	written, last := make([]int64, Keys.Writers), make([]uuid.UUID, Keys.Writers)
	g, gctx := errgroup.WithContext(ctx)
	for w := range Keys.Writers {
		g.Go(func() error {
			conn, err := pgx.Connect(gctx, o.engines.DSN)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(context.WithoutCancel(gctx)) }()
			if _, err := conn.Exec(gctx, "SELECT set_config('synchronous_commit', $1, false)", wait); err != nil {
				return err
			}
			var id *uuid.UUID
			err = conn.QueryRow(gctx, `CALL bench.fill($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, NULL)`, pgx.QueryExecModeExec,
				!o.mode.table, w, Keys.PerWriter, Keys.Share(w, total), atMost, c.Topic, c.Source, c.Type, c.Fingerprint, body).Scan(&written[w], &id)
			if id != nil {
				last[w] = *id
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Backlog{}, fmt.Errorf("write events to the outbox: %w", err)
	}
	b := Backlog{Topic: c.Topic}
	for w, n := range written {
		if n > 0 {
			b.Events += n
			b.last = append(b.last, last[w])
		}
	}
	// A commit that waits takes the others along.
	if _, err := o.engines.DB.Exec(ctx, `SELECT pg_logical_emit_message(true, 'bench', '')`); err != nil {
		return b, err
	}
	return b, o.engines.DB.QueryRow(ctx, `SELECT pg_current_wal_lsn()::text`).Scan(&b.end)
}
