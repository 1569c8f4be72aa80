package api

import (
	"context"
	"time"

	"github.com/waybillhq/waybill/logistica/analytics"
)

type analyseFeesInput struct {
	ScopeInput
	Days int `query:"days" minimum:"1" maximum:"366" default:"30" doc:"How many days, today included."`
}

// FeeDay is what the platform billed on a day.
type FeeDay struct {
	Day      string `json:"day" format:"date"`
	Currency string `json:"currency"`
	Fees     int64  `json:"fees" doc:"How many were billed."`
	Billed   int64  `json:"billed_centavos" doc:"And how much, in hundredths of the currency."`
	Voids    int64  `json:"voids" doc:"How many were voided, of whatever day they are."`
	Voided   int64  `json:"voided_centavos"`
	Net      int64  `json:"net_centavos" doc:"Billed less voided."`
}

type analyseFeesOutput struct {
	Body struct {
		Days []FeeDay `json:"days" nullable:"false" doc:"The oldest first."`
	}
}

func (s *service) analyseFees(ctx context.Context, in *analyseFeesInput) (*analyseFeesOutput, error) {
	scope, err := s.scope(ctx, in.ScopeInput)
	if err != nil {
		return nil, err
	}
	today := analytics.DayOf(time.Now())
	days, err := s.Analytics.FeeDays(ctx, scope, today.AddDate(0, 0, 1-in.Days), today)
	if err != nil {
		return nil, err
	}
	out := &analyseFeesOutput{}
	out.Body.Days = make([]FeeDay, len(days))
	for i, d := range days {
		out.Body.Days[i] = FeeDay{d.Day.Format(time.DateOnly), d.Currency, d.Fees, d.Billed, d.Voids, d.Voided, d.Billed - d.Voided}
	}
	return out, nil
}

// CourierHour is how couriers spent an hour, all together.
type CourierHour struct {
	Hour        time.Time `json:"hour" doc:"Its beginning."`
	Available   int64     `json:"available_ms"`
	Reserved    int64     `json:"reserved_ms"`
	Busy        int64     `json:"busy_ms"`
	Paused      int64     `json:"paused_ms"`
	Utilisation *float64  `json:"utilisation,omitempty" minimum:"0" maximum:"1" doc:"Reserved and busy, of these and available."`
}

type analyseCouriersOutput struct {
	Body struct {
		Hours []CourierHour `json:"hours" nullable:"false" doc:"The oldest first."`
	}
}

func (s *service) analyseCouriers(ctx context.Context, in *HoursInput) (*analyseCouriersOutput, error) {
	now := time.Now()
	from, to := in.window(now)
	hours, err := s.Analytics.CourierHours(ctx, from, to, now)
	if err != nil {
		return nil, err
	}
	of := map[time.Time]analytics.CourierHour{}
	for _, h := range hours {
		of[h.Hour] = h
	}
	out := &analyseCouriersOutput{}
	everyHour(from, to, func(at time.Time) {
		h := of[at]
		busy, free := (h.Reserved + h.Busy).Milliseconds(), h.Available.Milliseconds()
		out.Body.Hours = append(out.Body.Hours, CourierHour{
			at, free, h.Reserved.Milliseconds(), h.Busy.Milliseconds(), h.Paused.Milliseconds(), partOf(busy, busy+free),
		})
	})
	return out, nil
}
