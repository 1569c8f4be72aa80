package orders

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// Code is the four digits a customer tells the courier at the door. Convert it
// to a string where it is meant to be seen: printed or logged it hides itself.
type Code string

// String hides the code.
func (Code) String() string { return "****" }

// GoString hides the code.
func (Code) GoString() string { return "****" }

// LogValue hides the code.
func (Code) LogValue() slog.Value { return slog.StringValue("****") }

// MarshalJSON refuses: a code gets into JSON by somebody's decision only.
func (Code) MarshalJSON() ([]byte, error) {
	return nil, errors.New("a delivery code is not written by itself: convert it to a string where it may be seen")
}

// How a delivery was shown.
const (
	ProofCode     = "CODE"     // the customer's code
	ProofMerchant = "MERCHANT" // the merchant's word
)

// MaxCodeTries is how many wrong codes are taken: five of ten thousand.
const MaxCodeTries = 5

// CodeRefused is a delivery whose code is missing or wrong, or that no code
// completes any more.
type CodeRefused struct {
	Missing bool // nothing of a code's form was given, which counts as no try
	Left    int  // tries that are left
}

func (e *CodeRefused) Error() string {
	switch {
	case e.Left == 0:
		return fmt.Sprintf("a wrong delivery code was given %d times: no further code is taken until the merchant resets the tries or confirms the delivery", MaxCodeTries)
	case e.Missing:
		return "the delivery needs its code: ask the customer for the four digits on their tracking page"
	}
	return fmt.Sprintf("the delivery code is wrong: ask the customer for the four digits on their tracking page; tries left: %d", e.Left)
}

func newCode() Code {
	n, err := rand.Int(rand.Reader, big.NewInt(10_000))
	if err != nil { // never: the program ends when there is no randomness
		panic(err)
	}
	return Code(fmt.Sprintf("%04d", n))
}

// codeForm tells what may be a code. What may not, a slip of the finger or
// nothing at all, costs no try.
func codeForm(text string) bool {
	return len(text) == 4 && strings.Trim(text, "0123456789") == ""
}

// tryCode compares given with the order's code, in a time that tells nothing of
// how much of it was right. A wrong one is counted in tx, which must commit.
func (s *Store) tryCode(ctx context.Context, tx pgx.Tx, o *Order, given string) (refused *CodeRefused, err error) {
	left := MaxCodeTries - int(o.CodeTries)
	switch {
	case left <= 0:
		return &CodeRefused{}, nil
	case !codeForm(given):
		return &CodeRefused{Missing: true, Left: left}, nil
	case subtle.ConstantTimeCompare([]byte(given), []byte(o.Code)) == 1:
		return nil, nil //nolint:nilnil // not refused
	}
	_, err = tx.Exec(ctx, `UPDATE orders.orders SET code_tries = code_tries + 1 WHERE tenant = $1 AND id = $2`, o.Tenant, o.ID)
	if err != nil {
		return nil, fmt.Errorf("count try of delivery code: %w", err)
	}
	o.CodeTries++
	return &CodeRefused{Left: left - 1}, nil
}

// ResetCode lets the courier try the delivery code of an order of tenant anew.
// The code stays the one that the customer sees. [ErrNotFound] if tenant has no
// such order.
func (s *Store) ResetCode(ctx context.Context, tenant, id uuid.UUID) (o Order, err error) {
	err = pg.InTenant(ctx, s.pool, tenant.String(), func(tx pgx.Tx) error {
		if o, err = lock(ctx, tx, tenant, id); err != nil {
			return err
		}
		o.CodeTries = 0
		if _, err := tx.Exec(ctx, `UPDATE orders.orders SET code_tries = 0 WHERE tenant = $1 AND id = $2`, tenant, id); err != nil {
			return fmt.Errorf("reset delivery code of order %s: %w", id, err)
		}
		return nil
	})
	return o, err
}
