package cli

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/webhook"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
)

// endpoint is that of a receiver, on the database that the environment names.
type endpoint struct {
	*hook
	t  *testing.T
	db *pgxpool.Pool
	id string
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	db, dsn := emptyDatabase(t)
	t.Setenv(config.EnvWebhookKeys, webhookTestKey)
	t.Setenv(config.EnvDatabaseURL, dsn)
	if err := pg.Migrate(t.Context(), db, incident.Migration(), webhook.Migration()); err != nil {
		t.Fatal(err)
	}
	if err := webhook.EnsureDays(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	e := &endpoint{hook: receive(t, db.Config().ConnString()), t: t, db: db}
	key, err := seal.ParseKey(webhookTestKey)
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(key)
	if err != nil {
		t.Fatal(err)
	}
	g := guard.New(guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	made, err := webhook.NewStore(db, box, g, webhook.StoreConfig{}).Create(t.Context(), "ana", webhook.Settings{URL: e.url})
	if err != nil {
		t.Fatal(err)
	}
	e.id = made.ID.String()
	return e
}

// run gives what a command says, whose end is to be as wanted.
func (e *endpoint) run(want int, args ...string) string {
	e.t.Helper()
	code, out, errOut := webhooks(e.t.Context(), args...)
	if code != want {
		e.t.Fatalf("%v: %d %s %s", args, code, out, errOut)
	}
	return out + errOut
}

// follow runs the command that was printed last.
func (e *endpoint) follow(out string) string {
	e.t.Helper()
	all := regexp.MustCompile(`waybill webhook ([^`+"`"+`\n]+)`).FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		e.t.Fatalf("%s: no command", out)
	}
	return e.run(exitOK, strings.Fields(all[len(all)-1][1])...)
}

func TestCommandsWorkAsTheyArePrinted(t *testing.T) {
	e := newEndpoint(t)
	e.answers(http.StatusInternalServerError)
	out := e.run(exitFailed, "ping", e.id, "--tenant", "ana")
	if !strings.Contains(out, "500") || !strings.Contains(out, "tried again") {
		t.Error(out)
	}
	if shown := e.follow(out); !strings.Contains(shown, "pending after 1 attempt") {
		t.Error(shown)
	}
	e.follow(e.run(exitOK, "ping", e.id, "--tenant", "ana", "--wait", "0s"))
	if out := e.follow(e.run(exitOK, "enable", e.id, "--tenant", "ana")); !strings.Contains(out, "on their way") {
		t.Error(out)
	}
}

func TestAPingThatEndsAnEndpointSaysSo(t *testing.T) {
	e := newEndpoint(t)
	e.answers(http.StatusGone)
	out := e.run(exitFailed, "ping", e.id, "--tenant", "ana")
	if !strings.Contains(out, "410") || !strings.Contains(out, "disabled now") || strings.Contains(out, "tried again") {
		t.Error(out)
	}
	again := e.run(exitFailed, "ping", e.id, "--tenant", "ana")
	for _, said := range []string{out, again} {
		if out := e.follow(said); !strings.Contains(out, "is called about") {
			t.Error(out)
		}
	}
}

func TestAPingOfAnEndpointThatIsLeftAloneSaysSo(t *testing.T) {
	e := newEndpoint(t)
	// As its sender before this one noted; this one takes it over so.
	err := pgx.BeginFunc(t.Context(), e.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT set_config('waybill.operator', 'on', true)`)
		if err == nil {
			_, err = tx.Exec(t.Context(), `INSERT INTO webhook.lanes (tenant, endpoint, failures, failing_since, open_until)
				VALUES ('ana', $1, 7, now(), now() + interval '5 minutes')`, e.id)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	out := e.run(exitFailed, "ping", e.id, "--tenant", "ana")
	if !strings.Contains(out, "left alone for another ") || !strings.Contains(out, "after 7 failures in a row") || strings.Contains(out, "sender") {
		t.Error(out)
	}
	if shown := e.follow(out); !strings.Contains(shown, "pending after 0 attempts") {
		t.Error(shown)
	}
	if out := e.run(exitOK, "ping", e.id, "--tenant", "ana", "--wait", "0s"); !strings.Contains(out, "waits: the endpoint is left alone") {
		t.Error(out)
	}
}

func TestAttemptsBeforeAResendAreCounted(t *testing.T) {
	e := newEndpoint(t)
	var pinged struct{ Event string }
	if err := json.Unmarshal([]byte(e.run(exitOK, "ping", e.id, "--tenant", "ana", "--json")), &pinged); err != nil {
		t.Fatal(err)
	}
	e.run(exitOK, "resend", e.id, pinged.Event, "--tenant", "ana")
	shown := ""
	for end := time.Now().Add(time.Minute); !strings.Contains(shown, "delivered after 2 attempts\n"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute: %s", shown)
		}
		shown = e.run(exitOK, "show", e.id, pinged.Event, "--tenant", "ana")
	}
	if n := strings.Count(shown, "204"); n != 2 {
		t.Errorf("%d attempts are listed: %s", n, shown)
	}
	if all := e.run(exitOK, "show", e.id, "--tenant", "ana"); !strings.Contains(all, "delivered  2") {
		t.Error(all)
	}
}

func TestACommandNamesWhatThisOneWasTold(t *testing.T) {
	for _, c := range []struct {
		told []string
		want string
	}{
		{[]string{"--tenant", "ana"}, "waybill webhook show 1 --tenant ana"},
		{[]string{"--tenant", "ana", "--dir", "/tmp/my data"}, "waybill webhook show 1 --tenant ana --dir '/tmp/my data'"},
		{[]string{"--tenant", "ana", "--dir", "./it's"}, `waybill webhook show 1 --tenant ana --dir './it'\''s'`},
		{[]string{"--tenant", "a;b", "--database", "postgres://me@db:5432/x"}, "waybill webhook show 1 --tenant 'a;b' --database postgres://me@db:5432/x"},
		{[]string{"--tenant", "ana", "--database", "postgres://me:s3cret@db/x"}, "waybill webhook show 1 --tenant ana --database …"},
		{[]string{"--tenant", "ana", "--database", "host=db password=s3cret"}, "waybill webhook show 1 --tenant ana --database …"},
		{nil, "waybill webhook show 1 --tenant T"},
	} {
		cmd := &cobra.Command{Use: "test"}
		flags := webhookFlags(cmd)
		if err := cmd.ParseFlags(c.told); err != nil {
			t.Fatal(err)
		}
		if got := flags.next("show", "1"); got != c.want {
			t.Errorf("%v: %s, want %s", c.told, got, c.want)
		}
	}
}
