package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PublicationStatus is the publication that names the outbox's table to the
// slot.
type PublicationStatus struct {
	Name   string `json:"name"`
	Exists bool   `json:"exists"`
	// Whole tells that every event is in the relay's stream.
	Whole  bool   `json:"whole"`
	Advice string `json:"advice,omitempty"` // what to do about it, empty if nothing
}

// ReadPublication asks for the publication of that name, waybill_outbox if empty.
func ReadPublication(ctx context.Context, db *pgxpool.Pool, name string) (PublicationStatus, error) {
	p := PublicationStatus{Name: orDefault(name, defaultPublication)}
	// What a schema dropped and made again leaves behind is empty, and its stream
	// silent, not broken.
	err := db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = $1),
		EXISTS (SELECT FROM pg_publication p JOIN pg_publication_tables t USING (pubname)
			WHERE pubname = $1 AND pubinsert AND pubviaroot AND schemaname = 'waybill' AND tablename = 'outbox_events'
			AND to_jsonb(t)->>'rowfilter' IS NULL)`, p.Name).Scan(&p.Exists, &p.Whole)
	if err != nil {
		return p, fmt.Errorf("look at publication %s: %w", p.Name, err)
	}
	p.Advice = p.advise()
	return p, nil
}

func (p *PublicationStatus) create() string {
	return "CREATE PUBLICATION " + p.sql() + " FOR TABLE waybill.outbox_events WITH (publish = 'insert', publish_via_partition_root = true)"
}

func (p *PublicationStatus) sql() string { return pgx.Identifier{p.Name}.Sanitize() }

func (p *PublicationStatus) advise() string {
	const after = "; the relay then makes its slot anew and publishes what it missed from the table"
	switch {
	case p.Whole:
		return ""
	case !p.Exists:
		return "the relay makes it when its role owns waybill.outbox_events and has CREATE on the database; if not, as one that does: " + p.create() + after
	}
	return "as its owner: ALTER PUBLICATION " + p.sql() + " SET TABLE waybill.outbox_events; ALTER PUBLICATION " + p.sql() +
		" SET (publish = 'insert', publish_via_partition_root = true)" + after
}

var errPublication = errors.New("publication leaves events out")

// ensurePublication makes the publication where somebody dropped it, and refuses
// one that leaves events out: that somebody altered. What commits until it is
// whole will never be in the stream, and has to be found in the table.
func (r *Relay) ensurePublication(ctx context.Context) error {
	p, err := ReadPublication(ctx, r.db, r.cfg.Publication)
	if err != nil || p.Whole {
		r.unpublished = r.unpublished && err != nil
		return err
	}
	if _, err := r.forgetComplete(ctx); err != nil {
		return err
	}
	if !p.Exists {
		if err = r.makePublication(ctx, p); err == nil {
			return nil
		}
	} else {
		err = fmt.Errorf("%w: %s does not carry all inserts of waybill.outbox_events", errPublication, p.Name)
	}
	if !r.unpublished { // once, and not with each try
		r.incident(ctx, "publication_incomplete", p.Name, err.Error()+": no event is published until it is mended: "+p.Advice)
	}
	r.unpublished = true
	return fmt.Errorf("%w; %s", err, p.Advice)
}

func (r *Relay) makePublication(ctx context.Context, p PublicationStatus) error {
	_, err := r.db.Exec(ctx, p.create())
	var server *pgconn.PgError
	if errors.As(err, &server) && (server.Code == "42710" || server.Code == "23505") {
		return nil // another relay was first
	}
	if err != nil {
		return fmt.Errorf("%w: %s does not exist, and cannot be made: %w", errPublication, p.Name, err)
	}
	r.unpublished = false
	r.log.ErrorContext(ctx, "the publication was gone: it is made anew, and what its slot cannot read past is published from the table", "publication", p.Name)
	r.incident(ctx, "publication_gone", p.Name, "somebody dropped the publication: it is made anew")
	return nil
}
