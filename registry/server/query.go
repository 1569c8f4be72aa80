package server

import (
	"net/http"
	"strconv"
)

func flag(r *http.Request, name string) bool {
	on, _ := strconv.ParseBool(r.URL.Query().Get(name))
	return on
}

// window reads the query's offset and limit; a limit of -1 is none.
func window(r *http.Request) (offset, limit int, err error) {
	limit = -1
	for name, n := range map[string]*int{"offset": &offset, "limit": &limit} {
		q := r.URL.Query().Get(name)
		if q == "" {
			continue
		}
		if *n, err = strconv.Atoi(q); err != nil {
			return 0, 0, refuse(http.StatusBadRequest, "%s: want a whole number", name)
		}
	}
	if limit <= 0 {
		limit = -1
	}
	return max(offset, 0), limit, nil
}

// page cuts a list by the query's offset and limit.
func page[T any](r *http.Request, all []T) ([]T, error) {
	offset, limit, err := window(r)
	if err != nil {
		return nil, err
	}
	all = all[min(offset, len(all)):]
	if limit > 0 && limit < len(all) {
		all = all[:limit]
	}
	if all == nil {
		all = []T{}
	}
	return all, nil
}
