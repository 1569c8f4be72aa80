package pg

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// Infrastructure tells whether err means that the database or the way to it is
// at fault, so that the same work would fail for anyone just now: wait and try
// again, without counting it against the work.
//
// True for a failed or lost connection, a time limit of the driver's own, and
// for SQLSTATE
//
//	08     connection exceptions
//	25006  read-only: a failover left us on a standby
//	53     out of memory, disk or connections
//	57P01 57P02 57P03 57P05  shut down, crashed, starting, dropped for idling
//	58     input, output or file faults of the server
//	XX001 XX002  corrupted data or index
//
// False for conflicts (see [Conflict]), for a statement that was cancelled or
// ran out of time (57014), for a transaction its client left idle (25P03), for
// all a statement can do wrong, and for a context of the caller that ended,
// since only the caller knows why it did. An HTTP client's network errors are
// not the database's; those of other clients look the same as ours.
func Infrastructure(err error) bool {
	if err == nil {
		return false
	}
	var server *pgconn.PgError
	var connect *pgconn.ConnectError
	var request *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &connect):
		return true
	case errors.As(err, &server):
		return infrastructureState(server.Code)
	case errors.As(err, &request), errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return lostConnection(err)
}

// Conflict tells whether err means that concurrent transactions stood in each
// other's way (serialization failure 40001, deadlock 40P01, lock not available
// 55P03): the same transaction, run again from its beginning, may succeed.
func Conflict(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return false
	}
	switch server.Code {
	case "40001", "40P01", "55P03":
		return true
	}
	return false
}

func infrastructureState(code string) bool {
	switch code {
	case "25006", "57P01", "57P02", "57P03", "57P05", "XX001", "XX002":
		return true
	}
	for _, class := range []string{"08", "53", "58"} {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}

func lostConnection(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) || pgconn.Timeout(err) {
		return true
	}
	for _, lost := range []error{
		pgconn.ErrConnClosed, net.ErrClosed, io.ErrUnexpectedEOF,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}
