package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waybillhq/waybill/saga"
)

func (s *server) routes() {
	route(s, huma.Operation{
		OperationID: "list-sagas", Method: http.MethodGet, Path: Prefix, Summary: "List instances of sagas, the latest first",
	}, s.list)
	route(s, huma.Operation{
		OperationID: "show-saga", Method: http.MethodGet, Path: Prefix + "/{saga}/{key}", Summary: "Show an instance with its record",
	}, s.show)
	route(s, huma.Operation{
		OperationID: "resume-saga", Method: http.MethodPost, Path: Prefix + "/{saga}/{key}/resume",
		Summary: "Have the step that needs an operator asked for anew; operators only", Errors: []int{403, 409},
	}, s.resume)
	route(s, huma.Operation{
		OperationID: "skip-saga-step", Method: http.MethodPost, Path: Prefix + "/{saga}/{key}/skip",
		Summary: "Count the step that is waited for as seen to by hand; operators only", Errors: []int{403, 409},
	}, s.skip)
}

// scope is the tenant whose sagas a caller asks for: its own, or for an operator
// the one that is asked for, "" being all.
func scope(ctx context.Context, asked string) (string, error) {
	who := callerOf(ctx)
	switch {
	case who.Operator != "":
		return asked, nil
	case asked != "" && asked != who.Tenant:
		return "", saga.ErrNotFound
	}
	return who.Tenant, nil
}

type listInput struct {
	Tenant string `query:"tenant" maxLength:"255" doc:"Of this tenant; for operators."`
	Saga   string `query:"saga" maxLength:"60" doc:"Of this saga."`
	Key    string `query:"key" maxLength:"1000" doc:"Of this key."`
	State  string `query:"state" enum:"running,compensating,needs_operator,completed,compensated"`
	Open   bool   `query:"open" doc:"That have not ended."`
	Stuck  bool   `query:"stuck" doc:"That need an operator, or wait for a step that was asked for."`
	After  string `query:"after" maxLength:"100" doc:"Begin behind the page whose next this is."`
	Limit  int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}

type listOutput struct{ Body saga.Page }

func (s *server) list(ctx context.Context, in *listInput) (*listOutput, error) {
	tenant, err := scope(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	page, err := saga.List(ctx, s.DB, saga.Filter{
		Tenant: tenant, Saga: in.Saga, Key: in.Key, State: saga.State(in.State),
		Open: in.Open, Stuck: in.Stuck, After: in.After, Limit: in.Limit,
	})
	return &listOutput{page}, err
}

// Path names the instances of a key.
type Path struct {
	Saga string `path:"saga" maxLength:"60" doc:"The saga's name."`
	Key  string `path:"key" maxLength:"1000" doc:"What it is about: the subject of its events."`
}

type showInput struct {
	Path
	Tenant string `query:"tenant" maxLength:"255" doc:"For operators, where several tenants have the key."`
	Round  int    `query:"round" minimum:"0" doc:"Which attempt; the last if left out."`
}

type showOutput struct{ Body saga.Detail }

func (s *server) show(ctx context.Context, in *showInput) (*showOutput, error) {
	tenant, err := scope(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	d, err := saga.Get(ctx, s.DB, saga.Ref{Tenant: tenant, Saga: in.Saga, Key: in.Key, Round: in.Round})
	return &showOutput{d}, err
}

// Which is the instance that something is done about, and why.
type Which struct {
	Tenant string `json:"tenant,omitempty" maxLength:"255" doc:"Where several tenants have the key."`
	Round  int    `json:"round,omitempty" minimum:"0" doc:"Which attempt; the last if left out."`
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Why; kept in the record."`
}

type instanceOutput struct{ Body saga.Instance }

type resumeInput struct {
	Path
	Body Which
}

func (s *server) resume(ctx context.Context, in *resumeInput) (*instanceOutput, error) {
	ask, err := operator(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	i, err := saga.Resume(ctx, s.DB, saga.Ref{Tenant: in.Body.Tenant, Saga: in.Saga, Key: in.Key, Round: in.Body.Round}, ask)
	return &instanceOutput{i}, err
}

type skipInput struct {
	Path
	Body struct {
		Which
		Step string `json:"step,omitempty" maxLength:"60" doc:"Only if it is this one that is waited for."`
	}
}

func (s *server) skip(ctx context.Context, in *skipInput) (*instanceOutput, error) {
	ask, err := operator(ctx, in.Body.Which)
	if err != nil {
		return nil, err
	}
	i, err := saga.Skip(ctx, s.DB, saga.Ref{Tenant: in.Body.Tenant, Saga: in.Saga, Key: in.Key, Round: in.Body.Round}, in.Body.Step, ask)
	return &instanceOutput{i}, err
}

// operator is the ask of a caller who may change something.
func operator(ctx context.Context, w Which) (saga.Ask, error) {
	who := callerOf(ctx)
	if who.Operator == "" {
		return saga.Ask{}, problem(http.StatusForbidden, "Sagas are resumed and skipped by operators.")
	}
	return saga.Ask{By: who.Operator + " by HTTP", Reason: w.Reason}, nil
}
