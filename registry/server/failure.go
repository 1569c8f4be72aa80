package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Confluent's error codes: the status, then two digits.
const (
	codeSubjectNotFound       = 40401
	codeVersionNotFound       = 40402
	codeSchemaNotFound        = 40403
	codeSubjectSoftDeleted    = 40404
	codeSubjectNotSoftDeleted = 40405
	codeVersionSoftDeleted    = 40406
	codeVersionNotSoftDeleted = 40407
	codeNoSubjectLevel        = 40408
	codeNoSubjectMode         = 40409
	codeIncompatible          = 409
	codeInvalidSchema         = 42201
	codeInvalidVersion        = 42202
	codeInvalidLevel          = 42203
	codeInvalidMode           = 42204
	codeNotPermitted          = 42205
	codeReferenceExists       = 42206
	codeInvalidSubject        = 42208
	codeStore                 = 50001
)

// failure is an answer that is no success.
type failure struct {
	Code    int    `json:"error_code"`
	Message string `json:"message"`
}

func (f *failure) Error() string { return f.Message }

func (f *failure) status() int {
	if f.Code >= 1000 {
		return f.Code / 100
	}
	return f.Code
}

func refuse(code int, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...)}
}

func noSubject(name string) error {
	return refuse(codeSubjectNotFound, "Subject '%s' not found.", name)
}

func noVersion(number string) error {
	return refuse(codeVersionNotFound, "Version %s not found.", number)
}

// fail answers err. What is not a refusal is our own trouble: told in the log,
// and to the client only in general.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var f *failure
	if !errors.As(err, &f) {
		s.cfg.Logger.ErrorContext(r.Context(), "schema registry request failed",
			"method", r.Method, "path", r.URL.Path, "error", err)
		f = &failure{codeStore, "The topic of the registry could not be written; try again"}
	}
	w.Header().Set("Content-Type", contentType(r))
	w.WriteHeader(f.status())
	_ = json.NewEncoder(w).Encode(f) // the client is gone, or it is told
}
