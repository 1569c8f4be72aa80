package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/tenants"
)

// KeyRing keeps the API keys of each tenant. A list is the newest first, those
// made before the one that is named.
type KeyRing interface {
	Keys(ctx context.Context, tenant, before uuid.UUID, limit int) ([]tenants.Key, error)
	Issue(ctx context.Context, tenant uuid.UUID, scope tenants.Scope, courier uuid.UUID) (tenants.Issued, error)
	Rotate(ctx context.Context, tenant, id uuid.UUID, grace time.Duration) (tenants.Issued, error)
	RevokeKey(ctx context.Context, tenant, id uuid.UUID) error
}

const rotateHow = "The new key works at once and is shown this once; the old one works until its grace period is over, also if it is rotated again. A key that leaked is rotated with a grace of 0s. If the answer was lost, rotate again."

// keyRoutes are a merchant's own. To have one key more, or one less, is the
// administrator's.
func (s *service) keyRoutes() {
	if s.Keys == nil {
		return
	}
	route(s, huma.Operation{
		OperationID: "list-keys", Method: http.MethodGet, Path: "/v1/keys",
		Summary: "List the merchant's API keys", Errors: []int{401, 422, 429, 503},
		Description: "The newest first, with those that ended. A key itself is never shown again.",
	}, s.listKeys)
	route(s, huma.Operation{
		OperationID: "rotate-key", Method: http.MethodPost, Path: "/v1/keys/{id}/rotate", DefaultStatus: http.StatusCreated,
		Summary: "Put a new API key in the place of one", Errors: []int{400, 401, 404, 409, 413, 415, 422, 429, 503},
		Description: rotateHow,
	}, s.rotateKey)
}

func (s *service) listKeys(ctx context.Context, in *PageInput) (*keysOutput, error) {
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	list, err := s.Keys.Keys(ctx, tenantOf(ctx).ID, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return keysAnswer(list, in.Limit), nil
}

type rotateInput struct {
	ID   string    `path:"id" maxLength:"64" doc:"The key's id, as the list has it."`
	Body *rotation `required:"false"`
}

func (s *service) rotateKey(ctx context.Context, in *rotateInput) (*newKeyOutput, error) {
	id, err := pathID(in.ID)
	if err != nil {
		return nil, err
	}
	grace, err := in.Body.grace()
	if err != nil {
		return nil, err
	}
	return newKeyAnswer(s.Keys.Rotate(ctx, tenantOf(ctx).ID, id, grace))
}

// pathID reads an id of a path. One that cannot be one is of nothing there is.
func pathID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, problem(http.StatusNotFound, "There is nothing here that you may see.")
	}
	return id, nil
}
