package billing

import (
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// State is where the fee of an attempt stands. The set is closed.
type State string

// The states of a fee. It goes from Billed to Voided; the others are ends from
// the beginning.
const (
	Billed State = "BILLED" // it is owed
	Failed State = "FAILED" // it could not be billed
	Voided State = "VOIDED" // it was owed
	Barred State = "BARRED" // its attempt was over before it could be billed
)

// Fee is the platform's fee of one attempt at finding a courier for an order.
type Fee struct {
	Order    uuid.UUID
	Attempt  int32     // from 1
	ID       uuid.UUID // nil where nothing was billed
	Courier  uuid.UUID
	Amount   int64 // centavos; 0 where nothing was billed
	Currency string
	State    State
	Reason   string     // of a state other than Billed, for an operator
	MadeAt   time.Time  // when it was billed, failed or barred
	VoidedAt *time.Time // nil unless it is voided
}

// ErrNotFound is an order of the tenant of which no fee is known.
var ErrNotFound = errors.New("no fee of such an order")

const selectFee = `SELECT order_id, attempt, coalesce(fee_id, '00000000-0000-0000-0000-000000000000'), courier_id, amount, currency, state, reason, made_at, voided_at
	FROM billing.fees `

func scanFee(row pgx.CollectableRow) (f Fee, err error) {
	err = row.Scan(&f.Order, &f.Attempt, &f.ID, &f.Courier, &f.Amount, &f.Currency, &f.State, &f.Reason, &f.MadeAt, &f.VoidedAt)
	f.MadeAt = f.MadeAt.UTC()
	if f.VoidedAt != nil {
		*f.VoidedAt = f.VoidedAt.UTC()
	}
	return f, err
}
