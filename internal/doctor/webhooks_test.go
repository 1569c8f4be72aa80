package doctor

import (
	"testing"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/webhook"
)

func TestWebhooksThatNobodySendsAreTold(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	p.finding("webhooks").is(t, OK, "none")
	if err := pg.Migrate(t.Context(), p.db, webhook.Migration()); err != nil {
		t.Fatal(err)
	}
	p.finding("webhooks").is(t, OK, "0 endpoints", "0 deliveries")
	// For all tenants to see, as the program's own role writes them.
	p.exec(`DO $$ BEGIN
		PERFORM set_config('waybill.operator', 'on', true);
		INSERT INTO webhook.due (tenant, endpoint, event_id, fresh) VALUES ('ana', gen_random_uuid(), gen_random_uuid(), true);
	END $$`)
	p.finding("webhooks").is(t, Warn, "1 delivery", "no sender", "waybill run webhook")
	p.exec(`INSERT INTO webhook.senders VALUES (gen_random_uuid(), now() + interval '1 hour')`)
	p.finding("webhooks").is(t, OK, "1 delivery")
	p.exec(`DO $$ BEGIN
		PERFORM set_config('waybill.operator', 'on', true);
		UPDATE webhook.due SET next_at = now() - interval '1 hour';
	END $$`)
	p.finding("webhooks").is(t, Warn, "ten minutes", "WAYBILL_WEBHOOK_KEYS")
}
