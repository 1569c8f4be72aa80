package webhook

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
)

var senderDSN = flag.String("sender", "", "be a sender on this database, for TestASenderThatIsKilledLosesNothing alone")

const atWork = "at work"

// patiently is quick, with a lease that is soon over.
var patiently = Config{Timeout: 3 * time.Second, Lease: 5 * time.Second, Every: 10 * time.Millisecond}

// TestSenderProcess is a process to be killed.
func TestSenderProcess(t *testing.T) {
	if *senderDSN == "" {
		t.Skip("a part of TestASenderThatIsKilledLosesNothing")
	}
	db, err := pg.Open(t.Context(), *senderDSN, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	box, err := seal.New(masterKey)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { // the parent closes our input when it is done, or dead
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	fmt.Println(atWork)
	g := guard.New(guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err := NewSender(NewStore(db, box, g, StoreConfig{}), patiently).Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// start runs a sender in a process of its own, and gives what kills it.
func start(t *testing.T, dsn string) (kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSenderProcess$", "-sender="+dsn)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = in.Close()
	}
}

func TestASenderThatIsKilledLosesNothing(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 200)
	const tenants, each = 5, 400
	var events []Event
	for i := range tenants {
		w.create(fmt.Sprint("tenant ", i), r.URL)
		for range each {
			events = append(events, anEvent(fmt.Sprint("tenant ", i), "a"))
		}
	}
	dsn := w.db.Config().ConnString()
	kill := start(t, dsn)
	w.fan(events[:1000]...)
	w.fan(events[1000:]...)
	w.until("some are sent", func() bool { return r.distinct() > 100 })
	kill()
	sent := r.distinct()
	kill = start(t, dsn)
	defer kill()
	w.until("another delivers", func() bool { return w.count(`SELECT count(*) FROM webhook.due`) == 0 })
	if n := w.count(`SELECT count(*) FROM webhook.deliveries WHERE state = 'delivered'`); n != len(events) || r.distinct() != n {
		t.Errorf("%d delivered and %d received of %d", n, r.distinct(), len(events))
	}
	t.Logf("%d were sent before the kill, %d calls for %d events in all", sent, len(r.got()), len(events))
}
