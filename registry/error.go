package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"
)

var (
	// ErrUnavailable is a registry that cannot be asked now: unreachable,
	// failing, refusing our credentials, or no registry at all. Nothing is
	// wrong with the event or the schema, so it is worth waiting.
	ErrUnavailable = errors.New("schema registry unavailable")
	// ErrDenied is an [ErrUnavailable] for want of credentials, or of the right
	// ones.
	ErrDenied = errors.New("credentials are missing, wrong, or not enough")
	// ErrNotWireFormat is a value that does not begin with a schema id.
	ErrNotWireFormat = errors.New("not in Confluent's wire format")
	// ErrUnknownSchema is a schema id the registry has never given.
	ErrUnknownSchema = errors.New("unknown schema id")
	// ErrInvalidSchema is a text that is no schema, one of a kind other than
	// Avro, or one larger than the registry takes.
	ErrInvalidSchema = errors.New("invalid schema")
	// ErrMalformed is a body or a JSON message that does not fit its schema.
	ErrMalformed = errors.New("does not fit its schema")
)

// IncompatibleError is a schema that may not follow the earlier ones of its
// subject.
type IncompatibleError struct {
	Subject string
	Reasons []string // each names the place in the schema, as the registry tells it
}

func (e *IncompatibleError) Error() string {
	return fmt.Sprintf("schema refused for subject %q, it may not follow the earlier versions: %s. "+
		"To mend: give every added field a default, keep fields without default and their types, "+
		"give an enum a default symbol before changing its symbols; "+
		"a fact of another shape deserves a record of another name",
		e.Subject, strings.Join(e.Reasons, "; "))
}

// UnknownSubjectError is a message for a subject without a schema.
type UnknownSubjectError struct {
	Subject  string
	Registry string // its URL, without credentials
}

func (e *UnknownSubjectError) Error() string {
	return fmt.Sprintf(`no schema is registered under subject %q; register one, for example:

  curl -X POST -H 'Content-Type: application/vnd.schemaregistry.v1+json' \
    --data '{"schema": "{\"type\":\"record\",\"name\":\"Note\",\"fields\":[{\"name\":\"text\",\"type\":\"string\"}]}"}' \
    %s`, e.Subject, shellQuote(e.Registry+"/subjects/"+url.PathEscape(e.Subject)+"/versions"))
}

func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Confluent's error codes, as far as they are decided on here.
const (
	codeSubjectNotFound = 40401
	codeVersionNotFound = 40402
	codeSchemaNotFound  = 40403
	codeSoftDeleted     = 40404
)

// verdict is the registry's considered answer to a request, nil when err is
// no such answer: a transport error, a failing server, or a 404 of something
// that is not a registry.
func verdict(err error) *sr.ResponseError {
	var answer *sr.ResponseError
	if !errors.As(err, &answer) {
		return nil
	}
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return answer
	case http.StatusNotFound:
		if answer.ErrorCode >= codeSubjectNotFound {
			return answer
		}
	}
	return nil
}

// unavailable says that err prevented doing.
func unavailable(doing string, err error) error {
	var answer *sr.ResponseError
	if errors.As(err, &answer) && answer.ErrorCode == 0 {
		// Not a registry's words but perhaps a proxy's page: long, and no help.
		err = fmt.Errorf("%s %s was answered with status %d", answer.Method, answer.URL, answer.StatusCode)
	}
	if answer != nil && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden) {
		return fmt.Errorf("%w: %s: %w: %w", ErrUnavailable, doing, ErrDenied, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, doing, err)
}

// refused is the registry's considered answer that it does not take a schema,
// nil if answer is another one.
func refused(doing, text string, answer *sr.ResponseError) error {
	if answer == nil {
		return nil
	}
	switch answer.StatusCode {
	case http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%s: %w: its %d bytes are more than the registry takes; move documentation and examples out of it: %w",
			doing, ErrInvalidSchema, len(text), answer)
	case http.StatusUnprocessableEntity:
		return fmt.Errorf("%s: %w: %w", doing, ErrInvalidSchema, answer)
	}
	return nil
}
