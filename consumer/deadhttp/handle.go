package deadhttp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/consumer"
)

const (
	usualLimit = 100
	maxLimit   = 1000
	maxBody    = 64 << 10
	decodeIn   = 3 * time.Second
)

func bad(format string, args ...any) error {
	return &problem{http.StatusUnprocessableEntity, fmt.Sprintf(format, args...)}
}

// filterOf reads a filter from a query.
func filterOf(r *http.Request) (f consumer.DeadFilter, limit int, err error) {
	q := r.URL.Query()
	f = consumer.DeadFilter{
		Group: q.Get("group"), Topic: q.Get("topic"), Type: q.Get("type"), Tenant: q.Get("tenant"),
		Event: q.Get("event"), Cause: q.Get("cause"), Parked: q.Get("parked") == "true",
	}
	if q.Has("key") {
		key := q.Get("key")
		f.Key = &key
	}
	for name, into := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if v := q.Get(name); v != "" {
			if *into, err = time.Parse(time.RFC3339, v); err != nil {
				return f, 0, bad("%s=%s: want a time such as 2026-01-31T08:00:00Z.", name, v)
			}
		}
	}
	limit = usualLimit
	if v := q.Get("limit"); v != "" {
		if limit, err = strconv.Atoi(v); err != nil || limit < 1 || limit > maxLimit {
			return f, 0, bad("limit=%s: want 1 to %d.", v, maxLimit)
		}
	}
	return f, limit, isID(f.Event)
}

func isID(id string) error {
	if id == "" {
		return nil
	}
	if _, err := uuid.Parse(id); err != nil {
		return bad("%q is no id: want a UUID.", id)
	}
	return nil
}

func (s *service) keys(r *http.Request) (any, error) {
	f, limit, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	keys, err := consumer.DeadKeys(r.Context(), s.db, f, limit)
	return map[string]any{"keys": keys}, err
}

func (s *service) causes(r *http.Request) (any, error) {
	f, limit, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	causes, err := consumer.DeadCauses(r.Context(), s.db, f, limit)
	return map[string]any{"causes": causes}, err
}

func (s *service) actions(r *http.Request) (any, error) {
	f, limit, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	actions, err := consumer.DeadActions(r.Context(), s.db, f.Group, f.Tenant, limit)
	return map[string]any{"actions": actions}, err
}

// shown is an event, with its value as JSON if that can be had.
type shown struct {
	consumer.DeadEvent
	Body       json.RawMessage `json:"body,omitempty"`
	Unreadable string          `json:"unreadable,omitempty"` // why there is no body
}

func (s *service) show(r *http.Request) (any, error) {
	q, id := r.URL.Query(), r.PathValue("event")
	if err := isID(id); err != nil {
		return nil, err
	}
	e, err := consumer.ShowDead(r.Context(), s.db, q.Get("group"), q.Get("tenant"), id)
	if err != nil || s.cfg.Decode == nil {
		return shown{DeadEvent: e}, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), decodeIn)
	defer cancel()
	out := shown{DeadEvent: e}
	if out.Body, err = s.cfg.Decode(ctx, e.Value); err != nil {
		out.Body, out.Unreadable = nil, err.Error()
	}
	return out, nil
}

// read reads a body that is understood whole: what was misspelt would choose
// more than was meant.
func read(r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return bad("The body is not what is wanted here: %v.", err)
	}
	return nil
}

const maxWords = 800 // bytes of a name or a reason

// asked is by whom, as the request says and as it came.
func asked(r *http.Request, a consumer.Ask) (consumer.Ask, error) {
	if len(a.By) > maxWords || len(a.Reason) > maxWords {
		return a, bad("by and reason: want at most %d bytes each.", maxWords)
	}
	if a.By == "" {
		a.By = "somebody"
	}
	a.By += " by HTTP from " + r.RemoteAddr
	return a, nil
}

func (s *service) redrive(r *http.Request) (any, error) {
	var in struct {
		consumer.DeadFilter
		consumer.Ask
		All bool `json:"all"` // of the group
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	f := in.DeadFilter
	narrow := f.Key != nil || f.Event+f.Cause+f.Topic+f.Type+f.Tenant != "" || !f.Since.IsZero() || !f.Until.IsZero()
	switch {
	case f.Group == "":
		return nil, bad("Which group? Nothing is redriven for all at once.")
	case !narrow && !in.All:
		return nil, bad("Which keys? Name a cause, a key, an event or another filter, or say all: true.")
	}
	if err := isID(f.Event); err != nil {
		return nil, err
	}
	ask, err := asked(r, in.Ask)
	if err != nil {
		return nil, err
	}
	return consumer.Redrive(r.Context(), s.db, f, ask)
}

func (s *service) progress(r *http.Request) (any, error) {
	if err := isID(r.PathValue("run")); err != nil {
		return nil, err
	}
	p, err := consumer.FindRedrive(r.Context(), s.db, r.PathValue("run"))
	return struct {
		consumer.RedriveProgress
		Done bool `json:"done"`
	}{p, p.Done()}, err
}

func (s *service) drop(r *http.Request) (any, error) {
	var in struct {
		consumer.Dropping
		consumer.Ask
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if err := isID(in.Event); err != nil {
		return nil, err
	}
	if err := in.Check(); err != nil {
		return nil, bad("%v.", err)
	}
	if in.Reason == "" {
		return nil, bad("Why? A reason is kept with what is given up.")
	}
	ask, err := asked(r, in.Ask)
	if err != nil {
		return nil, err
	}
	return consumer.Drop(r.Context(), s.db, in.Dropping, ask)
}
