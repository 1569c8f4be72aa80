package cli

import (
	"net/url"
	"strings"
)

// next is a command of waybill webhook that works as it is printed: for the same
// tenant, on what this one was told to work on.
func (c *webhookCommand) next(words ...string) string {
	words = append([]string{"waybill", "webhook"}, words...)
	words = append(words, "--tenant", or(*c.tenant, "T"))
	if c.dirAsked() {
		words = append(words, "--dir", c.dir)
	}
	if c.database != "" {
		words = append(words, "--database", withoutPassword(c.database))
	}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// withoutPassword is a connection string that may be shown. One with a password
// is not: its reader puts it in again.
func withoutPassword(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil || strings.Contains(strings.ToLower(dsn), "password") {
		return "…"
	}
	if _, has := u.User.Password(); has {
		return "…"
	}
	return dsn
}

// shellWord quotes what a shell would take for more than a word.
func shellWord(s string) string {
	const word = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,…"
	if s != "" && strings.Trim(s, word) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(oneLine(s), "'", `'\''`) + "'"
}
