package webhook

// FieldError is an [ErrInvalid] of one setting of an endpoint: url, description,
// types or algorithm, so that who asked can be shown where.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string { return e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

func invalid(field string, err error) error { return &FieldError{field, err} }
