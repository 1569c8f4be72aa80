package saga

import (
	"fmt"
	"time"

	"github.com/waybillhq/waybill/event"
)

// The domain of these tests: a trip is booked. A seat is taken, the card is
// charged, the ticket is mailed. A mailed ticket cannot be undone.

// fact is an event of the kind K about an attempt at a trip.
type fact[K kind] struct {
	Trip    string `avro:"trip"`
	Attempt int32  `avro:"attempt"`
}

type kind interface{ contract() *event.Contract }

func (fact[K]) EventContract() *event.Contract { var k K; return k.contract() }
func (f fact[K]) EventKey() string             { return f.Trip }
func (fact[K]) EventSequence() int64           { return 0 }

func contractOf(service, name string) *event.Contract {
	return event.MustContract("saga-test."+service, "/"+service, fmt.Sprintf(
		`{"type":"record","name":%q,"namespace":"travel","fields":[{"name":"trip","type":"string"},{"name":"attempt","type":"int"}]}`, name))
}

var (
	tripRequestedC = contractOf("trips", "TripRequested")
	tripCancelledC = contractOf("trips", "TripCancelled")
	seatTakenC     = contractOf("seats", "SeatTaken")
	seatRefusedC   = contractOf("seats", "SeatRefused")
	seatFreedC     = contractOf("seats", "SeatFreed")
	cardChargedC   = contractOf("bank", "CardCharged")
	cardRefusedC   = contractOf("bank", "CardRefused")
	cardRefundedC  = contractOf("bank", "CardRefunded")
	ticketMailedC  = contractOf("mail", "TicketMailed")
	mailRefusedC   = contractOf("mail", "MailRefused")
)

type (
	requestedKind struct{}
	cancelledKind struct{}
	takenKind     struct{}
	noSeatKind    struct{}
	freedKind     struct{}
	chargedKind   struct{}
	noMoneyKind   struct{}
	refundedKind  struct{}
	mailedKind    struct{}
	noMailKind    struct{}

	tripRequested = fact[requestedKind]
	tripCancelled = fact[cancelledKind]
	seatTaken     = fact[takenKind]
	seatRefused   = fact[noSeatKind]
	seatFreed     = fact[freedKind]
	cardCharged   = fact[chargedKind]
	cardRefused   = fact[noMoneyKind]
	cardRefunded  = fact[refundedKind]
	ticketMailed  = fact[mailedKind]
	mailRefused   = fact[noMailKind]
)

func (requestedKind) contract() *event.Contract { return tripRequestedC }
func (cancelledKind) contract() *event.Contract { return tripCancelledC }
func (takenKind) contract() *event.Contract     { return seatTakenC }
func (noSeatKind) contract() *event.Contract    { return seatRefusedC }
func (freedKind) contract() *event.Contract     { return seatFreedC }
func (chargedKind) contract() *event.Contract   { return cardChargedC }
func (noMoneyKind) contract() *event.Contract   { return cardRefusedC }
func (refundedKind) contract() *event.Contract  { return cardRefundedC }
func (mailedKind) contract() *event.Contract    { return ticketMailedC }
func (noMailKind) contract() *event.Contract    { return mailRefusedC }

// attempt is the round of a trip's event.
func attempt[K kind](e event.Of[fact[K]]) int { return int(e.Data.Attempt) }

// trip is the saga, with a deadline for each step. An overdue step is asked for
// three times.
func trip(limit time.Duration) Saga {
	return Saga{
		Name:  "book-trip",
		Start: On(attempt[requestedKind]),
		Abort: On(func(e event.Of[tripCancelled]) int {
			if e.Data.Attempt > 0 {
				return int(e.Data.Attempt)
			}
			return EveryRound
		}),
		Steps: []Step{
			{Name: "seat", Done: On(attempt[takenKind]), Failed: On(attempt[noSeatKind]), Undone: On(attempt[freedKind]), Within: limit, Pause: limit, Asks: 3},
			{Name: "charge", Done: On(attempt[chargedKind]), Failed: On(attempt[noMoneyKind]), Undone: On(attempt[refundedKind]), Within: limit, Pause: limit, Asks: 3},
			{Name: "mail", Done: On(attempt[mailedKind]), Failed: On(attempt[noMailKind]), Within: limit, Pause: limit, Asks: 3},
		},
	}
}
