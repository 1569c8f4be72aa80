package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/tenants"
)

// APIKey is what is shown of a key: never the key itself.
type APIKey struct {
	ID        uuid.UUID  `json:"id"`
	Scope     string     `json:"scope" enum:"merchant,courier,admin"`
	Courier   *uuid.UUID `json:"courier,omitempty" doc:"Whose key it is, of scope courier."`
	Hint      string     `json:"hint,omitempty" doc:"The last four before the second underline, to tell keys apart."`
	State     string     `json:"state" enum:"active,ending,ended,revoked"`
	CreatedAt time.Time  `json:"created_at"`
	EndsAt    *time.Time `json:"ends_at,omitempty" doc:"Until when it is good, of a key that was rotated."`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
}

// NewAPIKey is a key as it is shown once.
type NewAPIKey struct {
	APIKey
	Key string `json:"key" doc:"The key. It is shown this once; only its hash is kept."`
}

func keyJSON(k tenants.Key) APIKey {
	out := APIKey{
		ID: k.ID, Scope: string(k.Scope), Hint: k.Hint, State: string(k.State(time.Now())),
		CreatedAt: k.CreatedAt, EndsAt: k.EndsAt, RevokedAt: k.RevokedAt,
	}
	if k.Courier != uuid.Nil {
		out.Courier = &k.Courier
	}
	return out
}

type newKeyOutput struct{ Body NewAPIKey }

func newKeyAnswer(k tenants.Issued, err error) (*newKeyOutput, error) {
	if err != nil {
		return nil, err
	}
	return &newKeyOutput{NewAPIKey{keyJSON(k.Key), k.Secret}}, nil
}

type keysOutput struct {
	Body struct {
		Keys []APIKey `json:"keys" nullable:"false"`
		Next string   `json:"next_cursor,omitempty" doc:"Where the next page begins; left out on the last."`
	}
}

// keysAnswer is a page of keys of which one more than limit was asked for.
func keysAnswer(list []tenants.Key, limit int) *keysOutput {
	out := &keysOutput{}
	out.Body.Keys = []APIKey{}
	if len(list) > limit {
		list = list[:limit]
		out.Body.Next = cursor(list[limit-1].ID)
	}
	for _, k := range list {
		out.Body.Keys = append(out.Body.Keys, keyJSON(k))
	}
	return out
}

// PageInput asks for a page.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor" maxLength:"64" doc:"next_cursor of the page before."`
}

// before is the id that the page before ended with; nil for the first.
func (p *PageInput) before() (uuid.UUID, error) {
	if p.Cursor == "" {
		return uuid.Nil, nil
	}
	id, ok := readCursor(p.Cursor)
	if !ok {
		return uuid.Nil, badQuery("cursor", "Was not made by this API.")
	}
	return id, nil
}

// rotation is the body of a rotation. It may be left out.
type rotation struct {
	Grace string `json:"grace,omitempty" maxLength:"32" doc:"For how long the key still works, such as 24h, which it is if left out, or 0s; at most 720h."`
}

func (r *rotation) grace() (time.Duration, error) {
	if r == nil || r.Grace == "" {
		return tenants.DefaultGrace, nil
	}
	d, err := time.ParseDuration(r.Grace)
	if err != nil {
		return 0, badField("grace", "Must be a time such as 24h or 0s.")
	}
	return d, nil
}

func badField(field, message string) error {
	p := typed(http.StatusUnprocessableEntity, typeInvalid, "Invalid request", "Some fields are not acceptable.")
	p.Errors = []*huma.ErrorDetail{{Message: message, Location: "body." + field}}
	return p
}

// keyProblem is what the client may know of a refusal about keys, nil for other
// errors.
func keyProblem(err error) *Problem {
	switch {
	case errors.Is(err, tenants.ErrNoKey):
		return problem(http.StatusNotFound, "There is nothing here that you may see.")
	case errors.Is(err, tenants.ErrTooManyKeys):
		return problem(http.StatusConflict, sentence(tenants.ErrTooManyKeys.Error()))
	case errors.Is(err, tenants.ErrScope):
		return typed(http.StatusUnprocessableEntity, typeInvalid, "Invalid request", sentence(tenants.ErrScope.Error()))
	case errors.Is(err, tenants.ErrGrace):
		return typed(http.StatusUnprocessableEntity, typeInvalid, "Invalid request", sentence(tenants.ErrGrace.Error()))
	}
	return nil
}
