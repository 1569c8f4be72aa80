package doctor

import (
	"context"
	"fmt"
	"time"
)

// Skews of the clocks past which something is wrong.
const (
	skewWarn = time.Second
	skewFail = 10 * time.Minute
)

// clock compares this host's with the server's. A question and its answer
// bound what can be known: the server looked at its clock in between.
func clock(ctx context.Context, s *Subject) ([]Finding, error) {
	var skew, bound time.Duration
	for i := range 5 { // the quickest answer tells most
		before := s.Now()
		began := time.Now()
		var server time.Time
		if err := s.db.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&server); err != nil {
			return nil, err
		}
		trip := time.Since(began)
		if i == 0 || trip < 2*bound {
			skew, bound = server.Sub(before.Add(trip/2)), trip/2
		}
	}
	what := fmt.Sprintf("the server is %s of this host, give or take %s", ahead(skew), bound.Round(10*time.Microsecond))
	if skew.Abs() <= bound {
		what = fmt.Sprintf("the server's and this host's agree within %s", bound.Round(10*time.Microsecond))
	}
	const (
		why  = "an event's id and time are of the clock of its writer: with clocks apart, ages are wrong and events fall into other days"
		mend = "keep both clocks with NTP: timedatectl set-ntp true, or chronyc tracking"
	)
	switch sure := skew.Abs() - bound; {
	case sure > skewFail:
		return fail(what, why, mend), nil
	case sure > skewWarn:
		return warn(what, why, mend), nil
	}
	return ok("%s", what), nil
}

func ahead(d time.Duration) string {
	if d < 0 {
		return (-d).Round(10*time.Microsecond).String() + " behind"
	}
	return d.Round(10*time.Microsecond).String() + " ahead"
}
