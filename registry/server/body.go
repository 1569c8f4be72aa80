package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
)

// bodyLimit is the largest request taken.
const bodyLimit = 1 << 20

const mediaType = "application/vnd.schemaregistry.v1+json"

// mediaTypes are taken for a body. The last is what some clients send that do
// not say.
func mediaTypes() []string {
	return []string{mediaType, "application/vnd.schemaregistry+json", "application/json", "application/octet-stream"}
}

// readBody reads a request into v. Fields it does not know are passed over:
// newer clients send them.
func readBody(r *http.Request, v any) error {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		kind, _, err := mime.ParseMediaType(ct)
		if err != nil || !slices.Contains(mediaTypes(), kind) {
			return refuse(http.StatusUnsupportedMediaType, "HTTP 415 Unsupported Media Type; send Content-Type: %s", mediaType)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, bodyLimit))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return refuse(http.StatusRequestEntityTooLarge, "The request is larger than %d bytes", bodyLimit)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "The request broke off")
	}
	err = json.Unmarshal(body, v)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field == "":
		return refuse(http.StatusBadRequest, "The request is not the JSON expected here: want an object, got %s", kind.Value)
	case errors.As(err, &kind):
		return refuse(http.StatusBadRequest, "The request is not the JSON expected here: %s cannot be %s", kind.Field, kind.Value)
	case err != nil:
		return refuse(http.StatusBadRequest, "The request is not the JSON expected here: %s", err)
	}
	return nil
}
