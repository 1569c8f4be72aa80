package config

import (
	"errors"
	"fmt"
)

// maxKeepDays is a hundred years: more is a mistake.
const maxKeepDays = 36500

// Discards tells whether published events leave the database without a copy.
func (o *Outbox) Discards() bool { return o.Archive != nil && !*o.Archive }

// Days is KeepDays, 0 if left out.
func (o *Outbox) Days() int {
	if o.KeepDays == nil {
		return 0
	}
	return *o.KeepDays
}

// CheckRetention refuses what cannot be meant.
func (o *Outbox) CheckRetention() error {
	var errs []error
	if o.KeepDays != nil && (*o.KeepDays < 1 || *o.KeepDays > maxKeepDays) {
		errs = append(errs, fmt.Errorf("outbox.keep_days %d: want 1 to %d, or leave it out for 3", *o.KeepDays, maxKeepDays))
	}
	if o.Discards() && o.ArchiveDir != "" {
		errs = append(errs, errors.New("outbox.archive is false and outbox.archive_dir names a folder: leave one of them out"))
	}
	return errors.Join(errs...)
}
