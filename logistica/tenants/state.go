package tenants

import "time"

// KeyState is how good a key is.
type KeyState string

// The states of a key.
const (
	Active  KeyState = "active"
	Ending  KeyState = "ending" // rotated, and good until EndsAt
	Ended   KeyState = "ended"
	Revoked KeyState = "revoked"
)

// State is how good the key is at a time.
func (k Key) State(now time.Time) KeyState {
	switch {
	case k.RevokedAt != nil:
		return Revoked
	case k.EndsAt == nil:
		return Active
	case now.Before(*k.EndsAt):
		return Ending
	}
	return Ended
}
