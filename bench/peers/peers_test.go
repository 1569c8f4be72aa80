package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The forwarder is this program, played in a process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == forwardCommand {
		ctx, stop := signalled()
		err := command(ctx, os.Args[1:], os.Stdout)
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestEveryPeerPublishesEverythingInOrder(t *testing.T) {
	waybill := filepath.Join(t.TempDir(), "waybill")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", waybill, "./cmd/waybill")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var out bytes.Buffer
	err := command(context.WithoutCancel(t.Context()), []string{
		"--waybill", waybill, "--events", "500", "--rate", "50", "--latency", "1s", "--json",
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	var got comparison
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Peers) != 2 || got.Peers[0].Name != "waybill" || got.Peers[1].Name != "watermill" {
		t.Fatalf("%s", out.Bytes())
	}
	for _, p := range got.Peers {
		if p.PerSecond <= 0 || p.TimesFaster == nil || p.P99 < p.P50 || p.Settings == "" {
			t.Errorf("%+v", p)
		}
		if p.Lost != 0 || p.Reordered != 0 || p.Duplicates != 0 {
			t.Errorf("%s: %d lost, %d reordered, %d twice", p.Name, p.Lost, p.Reordered, p.Duplicates)
		}
	}
	if err := printTable(&out, got); err != nil {
		t.Error(err)
	}
}
