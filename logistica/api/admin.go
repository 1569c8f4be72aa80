package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/tenants"
)

// Tenants is every merchant there is.
type Tenants interface {
	List(ctx context.Context, before uuid.UUID, limit int) ([]tenants.Listed, error)
	Create(ctx context.Context, name string) (tenants.Tenant, error)
}

// adminRoutes are the platform's: an administrator makes merchants and keeps
// their keys.
func (s *service) adminRoutes() {
	if s.Tenants == nil || s.Keys == nil {
		return
	}
	const at = "/v1/admin/tenants"
	only := takes(tenants.Admin)
	route(s, huma.Operation{
		OperationID: "list-tenants", Method: http.MethodGet, Path: at, Metadata: only,
		Summary: "List the merchants", Errors: []int{401, 403, 422, 429, 503}, Description: "The newest first.",
	}, s.listTenants)
	route(s, huma.Operation{
		OperationID: "create-tenant", Method: http.MethodPost, Path: at, Metadata: only, DefaultStatus: http.StatusCreated,
		Summary: "Make a merchant", Errors: []int{400, 401, 403, 413, 415, 422, 429, 503},
		Description: "It has no key yet. Sent twice it makes two: names need not differ.",
	}, s.createTenant)
	route(s, huma.Operation{
		OperationID: "list-tenant-keys", Method: http.MethodGet, Path: at + "/{id}/keys", Metadata: only,
		Summary: "List a tenant's API keys", Errors: []int{401, 403, 404, 422, 429, 503},
		Description: "The newest first, with those that ended. The platform, with the administrators' and the couriers' keys, is tenant " + tenants.Platform.String() + ".",
	}, s.listTenantKeys)
	route(s, huma.Operation{
		OperationID: "issue-key", Method: http.MethodPost, Path: at + "/{id}/keys", Metadata: only, DefaultStatus: http.StatusCreated,
		Summary: "Give a tenant an API key", Errors: []int{400, 401, 403, 404, 409, 413, 415, 422, 429, 503},
		Description: "It is shown this once. If the answer was lost, revoke what the list has more.",
	}, s.issueKey)
	route(s, huma.Operation{
		OperationID: "rotate-tenant-key", Method: http.MethodPost, Path: at + "/{id}/keys/{key}/rotate", Metadata: only,
		DefaultStatus: http.StatusCreated, Summary: "Put a new API key in the place of one",
		Errors: []int{400, 401, 403, 404, 409, 413, 415, 422, 429, 503}, Description: rotateHow,
	}, s.rotateTenantKey)
	route(s, huma.Operation{
		OperationID: "revoke-key", Method: http.MethodDelete, Path: at + "/{id}/keys/{key}", Metadata: only,
		DefaultStatus: http.StatusNoContent, Summary: "Revoke an API key", Errors: []int{401, 403, 404, 429, 503},
		Description: "It ends within half a minute everywhere, and streams it opened within a minute. To revoke one twice is no error.",
	}, s.revokeKey)
}

// Merchant is a tenant as administrators see it.
type Merchant struct {
	ID        uuid.UUID  `json:"id"`
	Name      string     `json:"name"`
	CreatedAt *time.Time `json:"created_at,omitempty"`
}

type tenantsOutput struct {
	Body struct {
		Tenants []Merchant `json:"tenants" nullable:"false"`
		Next    string     `json:"next_cursor,omitempty" doc:"Where the next page begins; left out on the last."`
	}
}

func (s *service) listTenants(ctx context.Context, in *PageInput) (*tenantsOutput, error) {
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	list, err := s.Tenants.List(ctx, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := &tenantsOutput{}
	out.Body.Tenants = []Merchant{}
	if len(list) > in.Limit {
		list = list[:in.Limit]
		out.Body.Next = cursor(list[in.Limit-1].ID)
	}
	for _, t := range list {
		out.Body.Tenants = append(out.Body.Tenants, Merchant{t.ID, t.Name, &t.CreatedAt})
	}
	return out, nil
}

type createTenantInput struct {
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"120"`
	}
}

type tenantOutput struct{ Body Merchant }

func (s *service) createTenant(ctx context.Context, in *createTenantInput) (*tenantOutput, error) {
	name := strings.TrimSpace(in.Body.Name)
	if name == "" || len(name) > tenants.MaxName || strings.ContainsRune(name, 0) {
		return nil, badField("name", "Must be a name of at most 120 bytes.")
	}
	t, err := s.Tenants.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &tenantOutput{Merchant{ID: t.ID, Name: t.Name}}, nil
}

// TenantPath names a tenant.
type TenantPath struct {
	ID string `path:"id" maxLength:"64" doc:"The tenant's id."`
}

type tenantKeysInput struct {
	TenantPath
	PageInput
}

func (s *service) listTenantKeys(ctx context.Context, in *tenantKeysInput) (*keysOutput, error) {
	tenant, err := pathID(in.ID)
	if err != nil {
		return nil, err
	}
	before, err := in.before()
	if err != nil {
		return nil, err
	}
	list, err := s.Keys.Keys(ctx, tenant, before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	return keysAnswer(list, in.Limit), nil
}

type issueKeyInput struct {
	TenantPath
	Body struct {
		Scope   string `json:"scope" enum:"merchant,courier,admin" doc:"merchant of a merchant; courier or admin of the platform."`
		Courier string `json:"courier,omitempty" format:"uuid" doc:"Whose key it is, of scope courier."`
	}
}

func (s *service) issueKey(ctx context.Context, in *issueKeyInput) (*newKeyOutput, error) {
	tenant, err := pathID(in.ID)
	if err != nil {
		return nil, err
	}
	var courier uuid.UUID
	if in.Body.Courier != "" {
		if courier, err = uuid.Parse(in.Body.Courier); err != nil {
			return nil, badField("courier", "Must be a courier's id.")
		}
	}
	return newKeyAnswer(s.Keys.Issue(ctx, tenant, tenants.Scope(in.Body.Scope), courier))
}

// TenantKeyPath names a key of a tenant.
type TenantKeyPath struct {
	TenantPath
	Key string `path:"key" maxLength:"64" doc:"The key's id, as the list has it."`
}

func (p *TenantKeyPath) ids() (tenant, key uuid.UUID, err error) {
	if tenant, err = pathID(p.ID); err == nil {
		key, err = pathID(p.Key)
	}
	return tenant, key, err
}

type rotateTenantKeyInput struct {
	TenantKeyPath
	Body *rotation `required:"false"`
}

func (s *service) rotateTenantKey(ctx context.Context, in *rotateTenantKeyInput) (*newKeyOutput, error) {
	tenant, key, err := in.ids()
	if err != nil {
		return nil, err
	}
	grace, err := in.Body.grace()
	if err != nil {
		return nil, err
	}
	return newKeyAnswer(s.Keys.Rotate(ctx, tenant, key, grace))
}

func (s *service) revokeKey(ctx context.Context, in *TenantKeyPath) (*struct{}, error) {
	tenant, key, err := in.ids()
	if err != nil {
		return nil, err
	}
	return nil, s.Keys.RevokeKey(ctx, tenant, key)
}
