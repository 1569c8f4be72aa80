package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waybillhq/waybill/webhook"
)

// Secret is what the receiver verifies with.
type Secret struct {
	Key       string     `json:"key" doc:"whsec_… or, of a pair, the public whpk_…"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at" doc:"Null: it is the one in use."`
}

type secretsOutput struct {
	Body struct {
		Secrets []Secret `json:"secrets"`
	}
}

func secretsOf(all []webhook.Secret) *secretsOutput {
	out := &secretsOutput{}
	for _, x := range all {
		out.Body.Secrets = append(out.Body.Secrets, Secret{x.Key, x.CreatedAt, x.ExpiresAt})
	}
	return out
}

func (s *server) secretRoutes() {
	one := Prefix + "/endpoints/{endpoint}"
	route(s, huma.Operation{
		OperationID: "list-webhook-secrets", Method: http.MethodGet, Path: one + "/secrets", Summary: "Show the secrets that sign, the one in use first",
	}, s.secrets)
	route(s, huma.Operation{
		OperationID: "rotate-webhook-secret", Method: http.MethodPost, Path: one + "/rotate",
		Summary: "Make a new secret; the old one signs too for a while",
	}, s.rotate)
}

func (s *server) secrets(ctx context.Context, in *Path) (*secretsOutput, error) {
	all, err := s.Store.Secrets(ctx, tenantOf(ctx), in.Endpoint)
	return secretsOf(all), err
}

type rotateInput struct {
	Path
	Body struct {
		OverlapS *int64 `json:"overlap_s,omitempty" minimum:"0" maximum:"2592000" doc:"Seconds for which the old secret signs too; a day if left out. 0 ends all old ones at once: for one that leaked."`
	} `required:"false"`
}

func (s *server) rotate(ctx context.Context, in *rotateInput) (*secretsOutput, error) {
	overlap := webhook.DefaultOverlap
	if in.Body.OverlapS != nil {
		overlap = time.Duration(*in.Body.OverlapS) * time.Second
	}
	all, err := s.Store.Rotate(ctx, tenantOf(ctx), in.Endpoint, overlap)
	return secretsOf(all), err
}
