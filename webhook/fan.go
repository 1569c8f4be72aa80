package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Event is what endpoints are called about.
type Event struct {
	ID          uuid.UUID // a UUIDv7, or of event.ForeignID; the header webhook-id
	Tenant      string
	Type        string // what endpoints choose by
	Key         string // events of one have an order, for endpoints that want it; "" for none
	ContentType string // default application/json
	Body        []byte // as it is sent; the caller's to keep unchanged until Fan returns
}

const maxType = 500 // bytes

func (s *Store) checkEvent(e Event) error {
	switch {
	case e.ID == uuid.Nil || e.Tenant == "" || e.Type == "":
		return fmt.Errorf("%w event %s: id, tenant and type are required", ErrInvalid, e.ID)
	case len(e.Type) > maxType || !plain(e.Type) || len(e.ContentType) > maxType || !plain(e.ContentType):
		return fmt.Errorf("%w event %s: want type and content type of at most %d bytes", ErrInvalid, e.ID, maxType)
	case len(e.Body) > s.cfg.MaxBody:
		return fmt.Errorf("%w event %s: a body of %d bytes, at most %d are sent; send what it takes to ask for it", ErrInvalid, e.ID, len(e.Body), s.cfg.MaxBody)
	}
	return nil
}

// Fan writes a delivery for each event and endpoint of its tenant that wants it,
// in tx, which may be of any number of tenants. An event that was handed over
// before is passed over, so far as its endpoints were the same: it is one
// delivery for each, ever, within the time the log is kept. It costs two round
// trips however many events there are; give it up to a thousand.
//
// What endpoints there are is read in tx: one that was added before tx began
// hears of the event. An event of which a disabled endpoint would have heard is
// kept, to be replayed when it is enabled.
func (s *Store) Fan(ctx context.Context, tx pgx.Tx, events ...Event) error {
	var tenants []string
	seen := map[string]bool{}
	for _, e := range events {
		if err := s.checkEvent(e); err != nil {
			return err
		}
		if !seen[e.Tenant] {
			seen[e.Tenant] = true
			tenants = append(tenants, e.Tenant)
		}
	}
	if len(events) == 0 {
		return nil
	}
	audience, err := listeners(ctx, tx, tenants)
	if err != nil {
		return fmt.Errorf("find webhook endpoints: %w", err)
	}
	b := fanOut(events, audience)
	if len(b.ids) == 0 {
		return closeOperator(ctx, tx)
	}
	if err := b.write(ctx, tx); err != nil {
		return fmt.Errorf("write webhook deliveries: %w", err)
	}
	return nil
}

// listener is an endpoint, as far as it decides about events.
type listener struct {
	tenant   string
	endpoint uuid.UUID
	types    []string
	ordered  bool
	enabled  bool
	full     bool
}

// listeners opens the rows of all tenants to tx, as tx may be of several; write
// or closeOperator closes them again, since others share a handler's transaction.
func listeners(ctx context.Context, tx pgx.Tx, tenants []string) (map[string][]listener, error) {
	b := &pgx.Batch{}
	b.Queue(openSQL)
	b.Queue(`SELECT tenant, id, types, ordered, state = 'enabled', is_full FROM webhook.endpoints WHERE tenant = ANY($1)`, tenants)
	r := tx.SendBatch(ctx, b)
	if _, err := r.Exec(); err != nil {
		_ = r.Close()
		return nil, err
	}
	rows, err := r.Query()
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l listener, err error) {
		return l, row.Scan(&l.tenant, &l.endpoint, &l.types, &l.ordered, &l.enabled, &l.full)
	})
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	of := map[string][]listener{}
	for _, l := range all {
		of[l.tenant] = append(of[l.tenant], l)
	}
	return of, r.Close()
}

// The setting is given back as it was: the transaction may be an operator's.
const (
	openSQL = `SELECT set_config('waybill.webhook_operator', coalesce(was, ''), true), set_config('` + operatorSetting + `', 'on', true)
		FROM (SELECT current_setting('` + operatorSetting + `', true) AS was OFFSET 0) s`
	closeSQL = `SELECT set_config('` + operatorSetting + `', current_setting('waybill.webhook_operator', true), true)`
)

func closeOperator(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, closeSQL)
	return err
}

// columns of what is written, messages first, then the deliveries of them.
type columns struct {
	tenants, types, keys, contentTypes []string
	ids                                []uuid.UUID
	bodies                             [][]byte

	toTenants, toTypes []string
	toEndpoints, toIDs []uuid.UUID
	toKeys             []*string
	toStates           []string
}

func fanOut(events []Event, audience map[string][]listener) *columns {
	c := &columns{}
	type name struct {
		tenant string
		id     uuid.UUID
	}
	seen := map[name]bool{}
	for _, e := range events {
		if seen[name{e.Tenant, e.ID}] {
			continue
		}
		seen[name{e.Tenant, e.ID}] = true
		e.Key = clean(e.Key)
		wanted := false
		for _, l := range audience[e.Tenant] {
			if !wants(l.types, e.Type) {
				continue
			}
			wanted = true
			if l.enabled {
				c.deliver(e, l)
			}
		}
		if wanted {
			if e.ContentType == "" {
				e.ContentType = "application/json"
			}
			if e.Body == nil {
				e.Body = []byte{} // not NULL
			}
			c.tenants, c.types, c.keys = append(c.tenants, e.Tenant), append(c.types, e.Type), append(c.keys, e.Key)
			c.contentTypes, c.ids, c.bodies = append(c.contentTypes, e.ContentType), append(c.ids, e.ID), append(c.bodies, e.Body)
		}
	}
	return c
}

// clean makes text of a key that is none: what it is does not matter, only which
// are the same.
func clean(key string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(key, "\ufffd"), "\x00", "\ufffd")
}

func (c *columns) deliver(e Event, l listener) {
	var key *string
	if l.ordered && e.Key != "" {
		key = &e.Key
	}
	c.toTenants, c.toTypes, c.toKeys = append(c.toTenants, e.Tenant), append(c.toTypes, e.Type), append(c.toKeys, key)
	c.toEndpoints, c.toIDs = append(c.toEndpoints, l.endpoint), append(c.toIDs, e.ID)
	state := Pending
	if l.full {
		state = Failed
	}
	c.toStates = append(c.toStates, string(state))
}

func (c *columns) write(ctx context.Context, tx pgx.Tx) error {
	full, err := json.Marshal([]Attempt{{At: time.Now().UTC().Truncate(time.Millisecond), Error: "too much waits for the endpoint: replay what failed when it has caught up"}})
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO webhook.messages (tenant, event_id, type, key, content_type, body)
		SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bytea[]) ON CONFLICT DO NOTHING`,
		c.tenants, c.ids, c.types, c.keys, c.contentTypes, c.bodies)
	// The number decides about the order of keys, and is given in that of the
	// events.
	b.Queue(`WITH given AS MATERIALIZED (
			SELECT * FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY
				AS g (tenant, endpoint, event_id, type, key, state, n)),
		logged AS (INSERT INTO webhook.deliveries (tenant, endpoint, event_id, type, state, log, finished_at)
			SELECT tenant, endpoint, event_id, type, state, CASE WHEN state = 'failed' THEN $7::jsonb ELSE '[]' END, CASE WHEN state = 'failed' THEN now() END
			FROM given ON CONFLICT DO NOTHING RETURNING tenant, endpoint, event_id)
		INSERT INTO webhook.due (tenant, endpoint, event_id, key, fresh)
			SELECT tenant, endpoint, event_id, key, true FROM given JOIN logged USING (tenant, endpoint, event_id) WHERE state = 'pending' ORDER BY n`,
		c.toTenants, c.toEndpoints, c.toIDs, c.toTypes, c.toKeys, c.toStates, string(full))
	b.Queue(closeSQL)
	return tx.SendBatch(ctx, b).Close()
}
