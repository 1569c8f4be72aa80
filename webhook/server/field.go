package server

import (
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waybillhq/waybill/webhook"
)

// invalid names the field, where one is at fault, as huma does for what a schema
// refuses: a form shows the message beside it.
func invalid(err error) *Problem {
	p := problem(http.StatusUnprocessableEntity, err.Error())
	var of *webhook.FieldError
	if errors.As(err, &of) {
		p.Errors = []*huma.ErrorDetail{{Location: "body." + of.Field, Message: of.Error()}}
	}
	return p
}
