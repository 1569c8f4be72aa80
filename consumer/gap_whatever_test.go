package consumer

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/event"
)

// dropLate gives up what came too late, as an operator would, until nothing is
// parked any more and each key's last number has had its effect.
func (w *world) dropLate() {
	w.t.Helper()
	w.until("every key has come to its last number", func() bool {
		for _, k := range w.deadKeys(DeadFilter{}) {
			if k.Class != "late" {
				w.t.Fatalf("dead: %+v", k)
			}
			if _, err := Drop(w.t.Context(), w.db, Dropping{Group: w.group, Event: k.EventID}, Ask{By: "test", Reason: "too late"}); err != nil {
				w.t.Fatal(err)
			}
		}
		if w.number(`SELECT count(*) FROM waybill.parked`) > 0 {
			return false
		}
		for k, n := range w.sent {
			if w.number(`SELECT count(*) FROM effect WHERE key = $1 AND n = $2`, k, n) == 0 {
				return false
			}
		}
		return true
	})
}

// accounted holds each key's effects and reports against each other: a number
// has its effect once or is reported missing once, and what is reported has no
// effect, unless late ones are handled. The effects ascend.
func (w *world) accounted(g Gaps) {
	w.t.Helper()
	for k, last := range w.sent {
		made, missing := w.made(k), w.missing(k)
		if twice := len(slices.Compact(slices.Clone(missing))) != len(missing); twice {
			w.t.Fatalf("%s: reported twice: %v", k, missing)
		}
		if g.holds() && !slices.IsSorted(made) {
			w.t.Fatalf("%s: effects out of order: %v", k, made)
		}
		for n := int64(1); n <= last; n++ {
			_, told := slices.BinarySearch(missing, n)
			times := 0
			for _, m := range made {
				if m == n {
					times++
				}
			}
			if times > 1 || times == 0 && !told || times == 1 && told && g.holds() {
				w.t.Fatalf("%s: number %d has %d effects, reported missing: %v; effects %v, missing %v", k, n, times, told, made, missing)
			}
		}
	}
}

// sender publishes events of which some are lost, late, or sent twice.
type sender struct {
	w       *world
	delayed []*kgo.Record
}

func (s *sender) send(key string, fate int) {
	rec := s.w.record(key)
	switch {
	case s.w.sent[key] == 1: // the baseline
		s.w.publish(rec)
	case fate < 15: // lost
	case fate < 40:
		s.delayed = append(s.delayed, rec)
	case fate < 50:
		again := *rec
		s.w.publish(rec, &again)
	default:
		s.w.publish(rec)
	}
}

func (s *sender) deliver(n int) {
	n = min(n, len(s.delayed))
	s.w.publish(s.delayed[:n]...)
	s.delayed = s.delayed[n:]
}

// Whatever is lost, delayed or sent twice, and whoever comes and goes: effects
// of a key ascend, and each number that is missing is reported once.
func TestEachNumberIsHandledInOrderOrReportedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	rapidChecks(t, "8")
	rapid.Check(t, func(rt *rapid.T) {
		w.exec(`TRUNCATE effect`)
		w.sent = map[string]int64{}
		run := rand.Int()
		g := rapid.SampledFrom([]Gaps{HoldGaps, HoldGaps, ReportGaps}).Draw(rt, "gaps")
		wait := time.Duration(rapid.IntRange(1, 300).Draw(rt, "wait ms")) * time.Millisecond
		f := &flaky{left: map[moved]int{}, times: func() int { return max(0, rand.IntN(10)-7) }}
		start := func() *member {
			return w.start(f.keep, gaps(g, wait), func(s *setup) { s.cfg.MaxInFlight = 40 })
		}
		s := &sender{w: w}
		var members []*member
		rt.Repeat(map[string]func(*rapid.T){
			"publish": func(rt *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(rt, "events") {
					s.send(fmt.Sprintf("%d.%d", run, rapid.IntRange(0, 5).Draw(rt, "key")), rapid.IntRange(0, 99).Draw(rt, "fate"))
				}
			},
			"deliver": func(rt *rapid.T) { s.deliver(rapid.IntRange(1, 9).Draw(rt, "late")) },
			"join": func(rt *rapid.T) {
				if len(members) == 2 {
					rt.Skip()
				}
				members = append(members, start())
			},
			"leave": func(rt *rapid.T) {
				if len(members) == 0 {
					rt.Skip()
				}
				members[0].end(t)
				members = members[1:]
			},
			"forget positions": func(*rapid.T) { w.exec(`UPDATE waybill.watermark SET next_offset = 0 WHERE random() < 0.5`) },
			"wait": func(rt *rapid.T) {
				<-time.After(time.Duration(rapid.IntRange(1, 200).Draw(rt, "ms")) * time.Millisecond)
			},
		})
		members = append(members, start()) // see TestEachKeyKeepsItsOrderWhateverHappens
		s.deliver(len(s.delayed) / 2)
		for k := range w.sent {
			s.send(k, 99)
		}
		w.dropLate()
		w.accounted(g)
		for _, m := range members {
			m.end(t)
		}
	})
}

var gapMemberArgs = flag.String("gap-member", "", "be a member: DSN|brokers|topic|group, for TestKilledMembersReportEachNumberOnce alone")

// TestGapMember is a process to be killed.
func TestGapMember(t *testing.T) {
	if *gapMemberArgs == "" {
		t.Skip("a part of TestKilledMembersReportEachNumberOnce")
	}
	a := strings.Split(*gapMemberArgs, "|")
	quiet := slog.New(slog.DiscardHandler)
	cfg := broker.Config{Brokers: strings.Split(a[1], ","), Logger: quiet}
	g := New(Deps{DB: openPool(t, a[0], nil), Decoder: plain{}, Client: func(opts ...kgo.Opt) (*kgo.Client, error) {
		return cfg.Client(append(opts, kgo.HeartbeatInterval(200*time.Millisecond))...)
	}}, Config{
		Group: a[3], Logger: quiet, FlushEvery: 100 * time.Millisecond, Retry: quickRetry, Drain: 200 * time.Millisecond,
		Gaps: HoldGaps, GapWait: 200 * time.Millisecond,
	})
	c := *movedContract
	c.Topic = a[2]
	var once sync.Once
	on(g, &c, func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		once.Do(func() { fmt.Println(atWork) })
		if rand.IntN(20) == 0 {
			return errors.New("by chance")
		}
		return keep(ctx, tx, e)
	})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
		stop()
	}()
	if err := g.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestKilledMembersReportEachNumberOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	members := []*process{w.spawnAs("TestGapMember", "gap-member"), w.spawnAs("TestGapMember", "gap-member")}
	stop := make(chan struct{})
	s := &sender{w: w}
	var load sync.WaitGroup
	load.Go(func() {
		for i := 0; pause(stop, 3*time.Millisecond); i++ {
			s.send(fmt.Sprint("k", i%29), rand.IntN(300)) // a fate of many makes few gaps
			if i%50 == 0 {
				s.deliver(len(s.delayed))
			}
		}
	})
	for range kills(t) {
		before := w.number(`SELECT count(*) FROM effect`)
		w.until("they work", func() bool { return w.number(`SELECT count(*) FROM effect`) > before+50 })
		i := 0
		w.until("one may be killed", func() bool { i = rand.IntN(len(members)); return members[i].mayDie() })
		members[i].kill()
		members[i] = w.spawnAs("TestGapMember", "gap-member")
	}
	close(stop)
	load.Wait()
	for k := range w.sent {
		s.send(k, 99)
	}
	w.dropLate()
	w.accounted(HoldGaps)
	for _, m := range members {
		_ = m.in.Close()
		if err := m.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
