package cli

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/test/proc"
)

// session is commands on one broker.
type session struct {
	*proc.Waybill
}

func (s session) command(args ...string) proc.Command {
	return proc.Command{Args: append(args, "--dir", s.Dir)}
}

func (s session) run(t *testing.T, args ...string) proc.Result {
	t.Helper()
	return s.command(args...).Run(t)
}

// topic makes a topic whose messages are {"text": string}.
func (s session) topic(t *testing.T, name string) {
	t.Helper()
	check(t, s.run(t, "topics", "create", name), 0)
	r := s.run(t, "publish", name, `{"text":"x"}`)
	check(t, r, 1)
	register(t, r)
}

// register runs the command that a message shows.
func register(t *testing.T, r proc.Result) {
	t.Helper()
	_, shown, ok := strings.Cut(r.Err, "for example:")
	if !ok {
		t.Fatalf("no command is shown:\n%s", r.Err)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl to try the command with")
	}
	out, err := exec.Command("sh", "-c", shown).CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"id"`) {
		t.Fatalf("the command shown fails: %v\n%s\n%s", err, shown, out)
	}
}

// texts are the messages of a topic from its beginning, sorted.
func (s session) texts(t *testing.T, topic string, count int) []string {
	t.Helper()
	r := s.run(t, "subscribe", topic, "--from-beginning", "--count", fmt.Sprint(count))
	check(t, r, 0)
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	slices.Sort(lines)
	return lines
}

func text(v string) string { return fmt.Sprintf(`{"text":%q}`, v) }

// TestBroker shares one `waybill broker`.
func TestBroker(t *testing.T) {
	s := session{proc.Broker(t)}
	t.Run("what is published is read, before and after kill -9", func(t *testing.T) { roundTrip(t, s) })
	t.Run("what does not fit is refused", func(t *testing.T) { refuse(t, s) })
	t.Run("a bad line is told by its number", func(t *testing.T) { badLine(t, s) })
	t.Run("an argument is one message, a line of input another", func(t *testing.T) { shapes(t, s) })
	t.Run("a group goes on where it stopped", func(t *testing.T) { group(t, s) })
	t.Run("a group from now misses nothing later", func(t *testing.T) { groupFromNow(t, s) })
	t.Run("tail shows envelope and body", func(t *testing.T) { tail(t, s) })
	t.Run("what does not exist is told", func(t *testing.T) { absent(t, s) })
	t.Run("kcat lists, produces and consumes", func(t *testing.T) { kcat(t, s) })
	if err := s.Stop(); err != nil {
		t.Errorf("stop: %v\n%s", err, s.Output())
	}
}

func roundTrip(t *testing.T, s session) {
	s.topic(t, "notes")
	check(t, s.run(t, "topics", "create", "notes"), 0) // again: nothing to do
	for i := range 5 {
		check(t, s.run(t, "publish", "notes", text(fmt.Sprint(i)), "--key", "k"), 0)
	}
	want := []string{text("0"), text("1"), text("2"), text("3"), text("4")}
	if got := s.texts(t, "notes", 5); !slices.Equal(got, want) {
		t.Errorf("read %v", got)
	}
	s.Kill()
	s.Start()
	if got := s.texts(t, "notes", 5); !slices.Equal(got, want) {
		t.Errorf("read after kill -9: %v", got)
	}
	check(t, s.run(t, "publish", "notes", text("5"), "--key", "k"), 0)
	if got := s.texts(t, "notes", 6); !slices.Equal(got, append(want, text("5"))) {
		t.Errorf("read %v", got)
	}
}

func refuse(t *testing.T, s session) {
	s.topic(t, "strict")
	for message, say := range map[string]string{
		`{"text":5}`:            "text",
		`{}`:                    "text",
		`{"text":"a","more":1}`: "more",
		`{"text":"a"`:           "JSON",
		`{"text":"a"} {}`:       "JSON",
		`nonsense`:              "JSON",
		`[]`:                    "",
	} {
		t.Run(message, func(t *testing.T) { check(t, s.run(t, "publish", "strict", message), 1, "message 1", say) })
	}
	r := s.run(t, "topics", "strict", "--json")
	if topics := parse[[]struct{ Records int }](t, r); len(topics) != 1 || topics[0].Records != 0 {
		t.Errorf("something was published: %s", r.Out)
	}
}

func badLine(t *testing.T, s session) {
	s.topic(t, "lines")
	c := s.command("publish", "lines", "--key", "k")
	c.Stdin = text("1") + "\n\n" + text("2") + "\n" + `{"txet":"3"}` + "\n" + text("4") + "\n"
	r := c.Run(t)
	check(t, r, 1, "message 4")
	if n := strings.Count(r.Out, "lines partition"); n != 2 {
		t.Errorf("%d confirmed, want the two before it\n%s", n, r.Out)
	}
	if got := s.texts(t, "lines", 2); !slices.Equal(got, []string{text("1"), text("2")}) {
		t.Errorf("read %v", got)
	}
}

func shapes(t *testing.T, s session) {
	s.topic(t, "shapes")
	check(t, s.run(t, "publish", "shapes", "{\n  \"text\":\n  \"one\"\n}\n"), 0)
	c := s.command("publish", "shapes", "-")
	c.Stdin = text("three") + "\r\n" + text("two") // Windows' ends of lines; none at the end
	check(t, c.Run(t), 0)
	if got := s.texts(t, "shapes", 3); !slices.Equal(got, []string{text("one"), text("three"), text("two")}) {
		t.Errorf("read %v", got)
	}
	c.Stdin = text(strings.Repeat("x", 9<<20))
	check(t, c.Run(t), 1, "message 1", "larger than")
	c.Stdin = ""
	check(t, c.Run(t), 0)
}

func group(t *testing.T, s session) {
	s.topic(t, "shared")
	c := s.command("publish", "shared", "--key", "k")
	for i := range 6 {
		c.Stdin += text(fmt.Sprint(i)) + "\n"
	}
	check(t, c.Run(t), 0)
	for i := range 3 {
		r := s.run(t, "subscribe", "shared", "--group", "readers", "--from-beginning", "--count", "2")
		check(t, r, 0)
		if want := text(fmt.Sprint(2*i)) + "\n" + text(fmt.Sprint(2*i+1)) + "\n"; r.Out != want {
			t.Errorf("read %q, want %q", r.Out, want)
		}
	}
	lags := parse[[]struct {
		Group, Topic string
		Lag          *int64
	}](t, s.run(t, "lag", "readers", "--json"))
	var behind int64
	for _, l := range lags {
		if l.Group != "readers" || l.Topic != "shared" {
			t.Errorf("lag of another: %+v", l)
		}
		if l.Lag != nil {
			behind += *l.Lag
		}
	}
	if len(lags) == 0 || behind != 0 {
		t.Errorf("%d partitions, %d behind", len(lags), behind)
	}
	groups := parse[[]struct{ Name string }](t, s.run(t, "groups", "--json"))
	if !slices.ContainsFunc(groups, func(g struct{ Name string }) bool { return g.Name == "readers" }) {
		t.Errorf("groups: %+v", groups)
	}
}

// A group that begins "now" has settled what that means for every partition:
// what comes while nobody subscribes is shown to the next one.
func groupFromNow(t *testing.T, s session) {
	s.topic(t, "steady")
	publish := func(from, to int) {
		c := s.command("publish", "steady")
		for i := from; i < to; i++ {
			c.Stdin += text(fmt.Sprint(i)) + "\n"
		}
		check(t, c.Run(t), 0)
	}
	publish(0, 4)
	// Nothing comes, so it is stopped by its first message, published below.
	first := make(chan proc.Result, 1)
	go func() { first <- s.run(t, "subscribe", "steady", "--group", "late", "--count", "1") }()
	began := func() bool {
		r := s.run(t, "lag", "late", "--json")
		return r.Code == 0
	}
	for late := time.Now().Add(2 * time.Minute); !began(); {
		if time.Now().After(late) {
			t.Fatal("the group did not begin within two minutes")
		}
	}
	publish(4, 12)
	r := <-first
	check(t, r, 0)
	seen := strings.Count(r.Out, "\n")
	r = s.run(t, "subscribe", "steady", "--group", "late", "--count", "7")
	check(t, r, 0)
	if seen += strings.Count(r.Out, "\n"); seen != 8 || strings.Contains(r.Out, text("0")+"\n") {
		t.Errorf("%d of the 8 messages since the group began:\n%s", seen, r.Out)
	}
}

func tail(t *testing.T, s session) {
	s.topic(t, "tailed")
	for i := range 4 {
		check(t, s.run(t, "publish", "tailed", text(fmt.Sprint(i)), "--key", "k", "--tenant", "acme", "--header", "colour=re=d"), 0)
	}
	for last, count := range map[string]int{"2": 2, "50": 4} { // more than there are: all
		r := s.run(t, "tail", "tailed", "--json", "--last", last, "--count", fmt.Sprint(count))
		check(t, r, 0)
		lines := strings.Split(strings.TrimSpace(r.Out), "\n")
		if len(lines) != count {
			t.Fatalf("%d lines, want %d", len(lines), count)
		}
		type shown struct {
			Key     string
			Headers map[string]string
			Body    struct{ Text string }
		}
		got := parse[shown](t, proc.Result{Out: lines[0]})
		if got.Key != "k" || got.Headers["ce_tenant"] != "acme" || got.Headers["colour"] != "re=d" || got.Body.Text != fmt.Sprint(4-count) {
			t.Errorf("shown: %s", lines[0])
		}
	}
	r := s.run(t, "tail", "tailed", "--count", "1")
	check(t, r, 0)
	if !strings.Contains(r.Out, "key=k tenant=acme") {
		t.Errorf("tail: %s", r.Out)
	}
}

func absent(t *testing.T, s session) {
	for _, c := range []struct {
		line string
		say  []string
	}{
		{"topics nosuch", []string{"nosuch does not exist", "waybill topics"}},
		{"topics notes nosuch --json", []string{"nosuch does not exist"}},
		{"subscribe nosuch", []string{"nosuch does not exist", "waybill topics create nosuch"}},
		{"tail nosuch", []string{"nosuch does not exist", "waybill topics create nosuch"}},
		{`publish nosuch {"text":""} --subject notes-value`, []string{"nosuch does not exist", "waybill topics create nosuch"}},
		{`publish notes {"text":""} --subject nosuch-value`, []string{`"nosuch-value"`, "curl"}},
		{`publish notes {"text":""} --type no.Such`, []string{`"notes-no.Such"`, "curl"}},
		{`publish notes {"text":""} --registry http://` + nowhere, []string{"registry", "--registry"}},
		{"lag nosuch", []string{"nosuch", "waybill groups"}},
		{"topics create not:a:name", []string{"not:a:name"}},
		{"topics create notes --partitions 9", []string{"notes", "partitions is 4, should be 9"}},
	} {
		t.Run(c.line, func(t *testing.T) { check(t, s.run(t, strings.Fields(c.line)...), 1, c.say...) })
	}
}

func kcat(t *testing.T, s session) {
	if _, err := exec.LookPath("kcat"); err != nil {
		t.Skip("no kcat")
	}
	s.topic(t, "plain")
	kcat := func(in string, args ...string) string {
		cmd := exec.Command("kcat", append([]string{"-b", s.Kafka, "-m", "30"}, args...)...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kcat %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := kcat("", "-L", "-t", "plain"); !strings.Contains(out, `topic "plain" with 4 partitions`) {
		t.Errorf("kcat -L: %s", out)
	}
	kcat("a\nb\nc\n", "-P", "-t", "plain", "-p", "1", "-X", "acks=all")
	if out := kcat("", "-C", "-t", "plain", "-p", "1", "-o", "beginning", "-e", "-q"); out != "a\nb\nc\n" {
		t.Errorf("kcat -C: %q", out)
	}
	// Not in the wire format: told by place, and the others go on.
	r := s.run(t, "subscribe", "plain", "--from-beginning", "--count", "3")
	check(t, r, 0, "plain[1]@0", "plain[1]@2")
}
