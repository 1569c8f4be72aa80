package cdc

import (
	"context"

	"github.com/waybillhq/waybill/incident"
)

// Kinds of incidents.
const (
	incidentSlotLost  = "slot lost"
	incidentSuspended = "table not published"
	incidentAnew      = "table read again"
	incidentOmitted   = "value omitted"
)

// tell writes down what an operator must hear of, in the log and in the table.
func (c *CDC) tell(ctx context.Context, kind, subject, text string, detail map[string]any) {
	c.log.ErrorContext(ctx, text, "incident", kind, "subject", subject)
	c.record(ctx, kind, subject, text, detail)
}

// note writes down what an operator may like to hear of.
func (c *CDC) note(ctx context.Context, kind, subject, text string) {
	c.log.InfoContext(ctx, text, "incident", kind, "subject", subject)
	c.record(ctx, kind, subject, text, nil)
}

func (c *CDC) record(ctx context.Context, kind, subject, text string, detail map[string]any) {
	err := incident.Record(ctx, c.db, incident.Incident{Part: "cdc", Kind: kind, Subject: subject, Text: text, Detail: detail})
	if err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "the incident above is in this log alone", "error", err)
	}
}
