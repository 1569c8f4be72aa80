package api

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waybillhq/waybill/logistica/couriers"
)

// courierProblem turns an error of couriers into what the client may know of it,
// and is nil for any other error.
func courierProblem(err error) *Problem {
	var forbidden *couriers.ForbiddenStatus
	var conflict *couriers.VersionConflict
	var invalid *couriers.Invalid
	var fast *couriers.TooFast
	switch {
	case errors.As(err, &forbidden):
		p := typed(http.StatusConflict, typeForbidden, "Forbidden status", forbidden.Error())
		p.From, p.To = string(forbidden.From), string(forbidden.To)
		p.Allowed, p.final = dutyNames(forbidden.Allowed), len(forbidden.Allowed) == 0
		return p
	case errors.As(err, &conflict):
		p := typed(http.StatusConflict, typeConflict, "Version conflict", conflict.Error())
		p.From, p.Version = string(conflict.State), conflict.Current
		return p
	case errors.As(err, &invalid):
		p := typed(http.StatusUnprocessableEntity, typeInvalid, "Invalid request", "Some fields are not acceptable.")
		for _, f := range invalid.Fields {
			p.Errors = append(p.Errors, &huma.ErrorDetail{Message: strings.ToUpper(f.Message[:1]) + f.Message[1:], Location: "body." + f.Field})
		}
		return p
	case errors.As(err, &fast):
		p := typed(http.StatusTooManyRequests, typeOverloaded, "Too many positions",
			"This device reports more often than it may. Nothing was taken; send the newest positions later.")
		p.retryAfter = fast.RetryAfter
		return p
	case errors.Is(err, couriers.ErrAway):
		p := typed(http.StatusServiceUnavailable, typeOverloaded, "Not available just now",
			"Positions are not taken just now. Send the next ones later; these need not come again.")
		p.retryAfter = 5 * time.Second
		return p
	case errors.Is(err, couriers.ErrCarried):
		return typed(http.StatusConflict, typeForbidden, "Goods are with the courier",
			"The goods are picked up: deliver them, or report FAILED and bring them back.")
	case errors.Is(err, couriers.ErrNotFound), errors.Is(err, couriers.ErrNoJob):
		return problem(http.StatusNotFound, "There is nothing here that you may see.")
	}
	return nil
}
