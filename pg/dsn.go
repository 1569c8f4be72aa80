package pg

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrDSN is a connection string that cannot be read.
var ErrDSN = errors.New("connection string cannot be read (want postgres://user:password@host:port/database or key=value pairs)")

// ReplicationDSN turns the connection string of an ordinary session into that
// of a logical replication session on the same database. Settings of the pool
// are dropped: a replication session would send them to the server, which
// refuses them.
func ReplicationDSN(dsn string) (string, error) {
	if _, err := settings(dsn); err != nil {
		return "", err
	}
	if isURL(dsn) {
		return replicationURL(dsn)
	}
	pairs, err := splitPairs(dsn)
	if err != nil {
		return "", err
	}
	var kept []string
	for _, p := range pairs {
		if p.key != "replication" && !strings.HasPrefix(p.key, "pool_") {
			kept = append(kept, p.key+"="+quoteValue(p.value))
		}
	}
	return strings.Join(append(kept, "replication=database"), " "), nil
}

func replicationURL(dsn string) (string, error) {
	head, query, _ := strings.Cut(dsn, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return "", ErrDSN
	}
	for key := range q {
		if strings.HasPrefix(key, "pool_") {
			q.Del(key)
		}
	}
	q.Set("replication", "database")
	return head + "?" + q.Encode(), nil
}

// settings are the keys a connection string names itself. It proves that the
// driver can read the string.
func settings(dsn string) (map[string]string, error) {
	if _, err := pgx.ParseConfig(dsn); err != nil {
		return nil, unreadable(err)
	}
	said := map[string]string{}
	if isURL(dsn) {
		_, query, _ := strings.Cut(dsn, "?")
		q, err := url.ParseQuery(query)
		if err != nil {
			return nil, ErrDSN
		}
		for key := range q {
			said[key] = q.Get(key)
		}
		return said, nil
	}
	pairs, err := splitPairs(dsn)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		said[p.key] = p.value
	}
	return said, nil
}

// unreadable drops the driver's text: it masks passwords by best effort only,
// and a malformed string is where that fails.
func unreadable(err error) error {
	var parse *pgconn.ParseConfigError
	if !errors.As(err, &parse) {
		return ErrDSN
	}
	if inner := parse.Unwrap(); inner != nil && !quotes(parse.ConnString, inner.Error()) {
		return fmt.Errorf("%w: %s", ErrDSN, inner.Error())
	}
	return ErrDSN
}

// quotes tells whether text repeats a piece of the connection string long
// enough to be a secret.
func quotes(dsn, text string) bool {
	const window = 4
	for i := 0; i+window <= len(dsn); i++ {
		if strings.Contains(text, dsn[i:i+window]) {
			return true
		}
	}
	return false
}

func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

type pair struct{ key, value string }

// splitPairs reads libpq's key=value form: blanks around "=", values in single
// quotes, a backslash before a quote or a backslash.
func splitPairs(s string) ([]pair, error) {
	const blanks = " \t\n\r\v\f"
	var pairs []pair
	for s = strings.TrimLeft(s, blanks); s != ""; s = strings.TrimLeft(s, blanks) {
		key, rest, ok := strings.Cut(s, "=")
		if !ok || strings.Trim(key, blanks) == "" {
			return nil, ErrDSN
		}
		value, rest, err := cutValue(strings.TrimLeft(rest, blanks))
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{strings.Trim(key, blanks), value})
		s = rest
	}
	return pairs, nil
}

func cutValue(s string) (value, rest string, err error) {
	quoted := strings.HasPrefix(s, "'")
	if quoted {
		s = s[1:]
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case quoted && c == '\'', !quoted && strings.IndexByte(" \t\n\r\v\f", c) >= 0:
			return b.String(), s[i+1:], nil
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return "", "", ErrDSN
	}
	return b.String(), "", nil
}

func quoteValue(v string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'"
}
