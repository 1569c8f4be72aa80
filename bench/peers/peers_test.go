package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var waybillProgram string

// The parts are this program, played in processes of their own.
func TestMain(m *testing.M) {
	if playing(os.Args[1:]) {
		ctx, stop := signalled()
		err := command(ctx, os.Args[1:], os.Stdout)
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(builtOnce(m.Run))
}

func builtOnce(run func() int) int {
	dir, err := os.MkdirTemp("", "waybill-peers-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	waybillProgram = filepath.Join(dir, "waybill")
	build := exec.Command("go", "build", "-C", "../..", "-o", waybillProgram, "./cmd/waybill")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s", err, out)
		return 1
	}
	return run()
}

// compared runs one comparison, and prints it for people as well.
func compared(t *testing.T, args ...string) (got report, printed string) {
	t.Helper()
	var out bytes.Buffer
	err := command(context.WithoutCancel(t.Context()), append([]string{"--waybill", waybillProgram, "--json"}, args...), &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	out.Reset()
	if err := got.print(&out); err != nil {
		t.Fatal(err)
	}
	return got, out.String()
}

func TestEveryPeerPublishesEverythingInOrder(t *testing.T) {
	r, printed := compared(t, "--only", "relay", "--events", "500", "--rate", "50", "--latency", "1s")
	if r.Consume != nil || r.Queue != nil {
		t.Error("more than was asked for")
	}
	got := r.Relay
	if len(got.Peers) != 2 || got.Peers[0].Name != "waybill" || got.Peers[1].Name != "watermill" {
		t.Fatalf("%+v", got)
	}
	for _, p := range got.Peers {
		if p.PerSecond <= 0 || p.TimesFaster == nil || p.P99 < p.P50 || p.Settings == "" || !strings.Contains(printed, p.Settings) {
			t.Errorf("%+v in %s", p, printed)
		}
		if p.Lost != 0 || p.Reordered != 0 || p.Duplicates != 0 {
			t.Errorf("%s: %d lost, %d reordered, %d twice", p.Name, p.Lost, p.Reordered, p.Duplicates)
		}
	}
}

func TestEveryConsumerHasEffectsOnceInOrderAlsoWhenKilled(t *testing.T) {
	const events = 3000
	r, printed := compared(t, "--only", "consume", "--events", fmt.Sprint(events), "--rounds", "1")
	got := r.Consume
	if got == nil || len(got.Peers) != 2 || got.Peers[0].Name != "waybill" || got.Peers[1].Name != "watermill" || got.Events != events {
		t.Fatalf("%+v", got)
	}
	for _, p := range got.Peers {
		if p.PerSecond <= 0 || len(p.Rates) != 1 || p.Faster == nil || !strings.Contains(printed, p.Settings) {
			t.Errorf("%+v in %s", p, printed)
		}
		if p.Lost != 0 || p.Reorder != 0 || p.Twice != 0 {
			t.Errorf("%s: %d lost, %d reordered, %d twice", p.Name, p.Lost, p.Reorder, p.Twice)
		}
		if p.Killed.At <= 0 || p.Killed.At >= events {
			t.Errorf("%s was killed with %d effects made: nothing was left to take over", p.Name, p.Killed.At)
		}
	}
}

func TestEveryQueueGivesEachMessageOnce(t *testing.T) {
	r, printed := compared(t, "--only", "queue", "--messages", "2000", "--batch", "50", "--workers", "4", "--rounds", "2")
	got := r.Queue
	if got == nil || len(got.Peers) != 3 || got.Peers[0].Name != "waybill" || got.Peers[1].Name != "river" {
		t.Fatalf("%+v", got)
	}
	for _, p := range got.Peers {
		for name, s := range map[string]phaseResult{"send": p.Send, "work": p.Work, "once": p.Once} {
			if s.PerSecond <= 0 || len(s.Rates) != 2 || s.Faster == nil {
				t.Errorf("%s, %s: %+v", p.Name, name, s)
			}
		}
		if p.Lost != 0 || p.Twice != 0 || !strings.Contains(printed, p.Settings) {
			t.Errorf("%s: %d lost, %d twice; %s", p.Name, p.Lost, p.Twice, printed)
		}
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--only", "nothing"}, {"--events", "0"}, {"--rounds", "0"}, {"--batch", "1001"}, {"--workers", "0"}, {"--connections", "0"}, {"more"},
	} {
		var out bytes.Buffer
		if err := command(t.Context(), args, &out); err == nil || out.Len() > 0 {
			t.Errorf("%v: %v, %s", args, err, &out)
		}
	}
}

func TestEverySecondRoundGoesBackwards(t *testing.T) {
	var got []int
	err := alternate(3, 2, func(_, i int) error {
		got = append(got, i)
		return nil
	})
	if err != nil || fmt.Sprint(got) != "[0 1 1 0 0 1]" {
		t.Errorf("%v, %v", got, err)
	}
	if m := median([]float64{9, 1, 2}); m != 2 {
		t.Errorf("median %v", m)
	}
	if m := median([]float64{4, 1, 2, 9}); m != 3 {
		t.Errorf("median of an even number %v", m)
	}
}
