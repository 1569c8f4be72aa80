package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// Faults sets what is broken on purpose.
type Faults interface {
	List(ctx context.Context) ([]faults.Setting, error)
	Set(ctx context.Context, name string, value int64, last time.Duration, by string) (faults.Setting, error)
	Clear(ctx context.Context, names ...string) (int64, error)
}

// faultRoutes are an administrator's: a fault strikes every merchant.
func (s *service) faultRoutes() {
	if s.Faults == nil {
		return
	}
	scopes := []tenants.Scope{tenants.Admin}
	if s.cfg.FaultsOf != uuid.Nil {
		scopes = append(scopes, tenants.Merchant)
	}
	only := takes(scopes...)
	route(s, huma.Operation{
		OperationID: "list-faults", Method: http.MethodGet, Path: "/v1/faults", Metadata: only,
		Summary: "List the faults there are, and how they are set", Errors: []int{401, 403, 429, 503},
		Description: "Faults break the product on purpose, for every merchant. An administrator's key is needed.",
	}, s.listFaults)
	route(s, huma.Operation{
		OperationID: "set-fault", Method: http.MethodPut, Path: "/v1/faults/{name}", Metadata: only,
		Summary: "Set a fault", Errors: []int{400, 401, 403, 404, 413, 415, 422, 429, 503},
		Description: "Every process sees it within a second. It strikes others than before, also with the same value; 0 clears it.",
	}, s.setFault)
	route(s, huma.Operation{
		OperationID: "clear-fault", Method: http.MethodDelete, Path: "/v1/faults/{name}", Metadata: only,
		DefaultStatus: http.StatusNoContent,
		Summary:       "Clear a fault", Errors: []int{401, 403, 404, 429, 503},
	}, s.clearFault)
}

// Fault is a fault and how it is set.
type Fault struct {
	Name  string     `json:"name"`
	Does  string     `json:"does" doc:"What it breaks."`
	Unit  string     `json:"unit" enum:"%,ms,events,switch" doc:"What value counts."`
	Max   int64      `json:"max" doc:"The greatest value."`
	Value int64      `json:"value" doc:"0 where it is off."`
	Left  *int64     `json:"left,omitempty" doc:"Of events: how many are still to come."`
	Until *time.Time `json:"until,omitempty" doc:"When it ends; left out where it holds until it is cleared."`
	SetAt *time.Time `json:"set_at,omitempty"`
	SetBy string     `json:"set_by,omitempty"`
}

func faultJSON(s faults.Setting) Fault {
	return Fault{
		Name: s.Name, Does: s.Does, Unit: string(s.Unit), Max: s.Max, Value: s.Value,
		Left: s.Left, Until: s.Until, SetAt: s.SetAt, SetBy: s.SetBy,
	}
}

type faultsOutput struct {
	Body struct {
		Faults []Fault `json:"faults" nullable:"false"`
	}
}

func (s *service) listFaults(ctx context.Context, _ *struct{}) (*faultsOutput, error) {
	if err := s.breaks(ctx); err != nil {
		return nil, err
	}
	all, err := s.Faults.List(ctx)
	if err != nil {
		return nil, err
	}
	out := &faultsOutput{}
	out.Body.Faults = make([]Fault, len(all))
	for i, f := range all {
		out.Body.Faults[i] = faultJSON(f)
	}
	return out, nil
}

type setFaultInput struct {
	Name string `path:"name" maxLength:"64" doc:"As the list names it."`
	Body struct {
		Value int64  `json:"value" minimum:"0" doc:"In the fault's unit."`
		For   string `json:"for,omitempty" maxLength:"32" doc:"How long it holds, such as 5m or 1h30m; without an end if left out."`
	}
}

type faultOutput struct{ Body Fault }

func (s *service) setFault(ctx context.Context, in *setFaultInput) (*faultOutput, error) {
	if err := s.breaks(ctx); err != nil {
		return nil, err
	}
	var last time.Duration
	if in.Body.For != "" {
		var err error
		if last, err = time.ParseDuration(in.Body.For); err != nil || last <= 0 {
			return nil, badFault("for", "Must be a time such as 5m or 1h30m, more than 0s.")
		}
	}
	set, err := s.Faults.Set(ctx, in.Name, in.Body.Value, last, "API key of "+tenantOf(ctx).Name)
	if err != nil {
		return nil, faultProblem(err)
	}
	return &faultOutput{faultJSON(set)}, nil
}

type faultPath struct {
	Name string `path:"name" maxLength:"64" doc:"As the list names it."`
}

func (s *service) clearFault(ctx context.Context, in *faultPath) (*struct{}, error) {
	if err := s.breaks(ctx); err != nil {
		return nil, err
	}
	_, err := s.Faults.Clear(ctx, in.Name)
	return nil, faultProblem(err)
}

// breaks refuses merchants other than the demonstration's.
func (s *service) breaks(ctx context.Context) error {
	if s.setsFaults(tenantOf(ctx)) {
		return nil
	}
	return problem(http.StatusForbidden, "This takes an API key of scope admin; yours is of scope merchant.")
}

func (s *service) setsFaults(t tenants.Tenant) bool {
	return s.Faults != nil && (t.Scope == tenants.Admin || s.cfg.FaultsOf != uuid.Nil && t.ID == s.cfg.FaultsOf)
}

// faultProblem is what the client may know of a refusal; other errors stay what
// they are.
func faultProblem(err error) error {
	var unknown *faults.UnknownError
	var invalid *faults.InvalidError
	switch {
	case errors.As(err, &unknown):
		return problem(http.StatusNotFound, sentence(unknown.Error()))
	case errors.As(err, &invalid):
		return badFault(invalid.Field, sentence(invalid.Error()))
	}
	return err
}

func badFault(field, message string) error {
	p := typed(http.StatusUnprocessableEntity, typeInvalid, "Invalid request", "Some fields are not acceptable.")
	p.Errors = []*huma.ErrorDetail{{Message: message, Location: "body." + field}}
	return p
}
