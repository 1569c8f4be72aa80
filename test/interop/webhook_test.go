package interop

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/webhook/sign"
)

// snippets are the blocks of a language in the documentation of webhooks.
func snippets(t *testing.T, language string) (all []string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(b), "\n```") {
		if code, ok := strings.CutPrefix(block, language+"\n"); ok && i%2 == 1 && strings.Contains(code, "verified(") {
			all = append(all, code)
		}
	}
	return all
}

// delivery is a call as it reaches a receiver.
type delivery struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`

	name string
	good bool
}

const body = `{"type":"logistica.orders.OrderCreated","timestamp":"2026-11-30T08:00:00Z","data":{"item":"pão de queijo"}}`

func signed(name string, good bool, secret sign.Key, at time.Time, keys ...sign.Key) delivery {
	h := http.Header{}
	sign.Headers(h, keys, event.NewID().String(), at, []byte(body))
	d := delivery{Secret: secret.Verification(), Headers: map[string]string{}, Body: body, name: name, good: good}
	for k := range h {
		d.Headers[strings.ToLower(k)] = h.Get(k)
	}
	return d
}

// deliveries are those that a receiver has to tell apart.
func deliveries() []delivery {
	key, former, other, now := sign.NewHMAC(), sign.NewHMAC(), sign.NewHMAC(), time.Now()
	all := []delivery{
		signed("a delivery", true, key, now, key),
		signed("one of a rotation, to who has the new secret", true, key, now, key, former),
		signed("one of a rotation, to who has the old secret", true, former, now, key, former),
		signed("one beside a signature of a pair", true, key, now, sign.NewEd25519(), key),
		signed("one with another secret", false, other, now, key),
		signed("one of six minutes ago", false, key, now.Add(-6*time.Minute), key),
		signed("one of the future", false, key, now.Add(6*time.Minute), key),
	}
	spoil := func(name string, f func(*delivery)) {
		d := signed(name, false, key, now, key)
		f(&d)
		all = append(all, d)
	}
	spoil("another body", func(d *delivery) { d.Body = strings.Replace(d.Body, "pão", "mão", 1) })
	spoil("another id", func(d *delivery) { d.Headers["webhook-id"] = event.NewID().String() })
	spoil("another time", func(d *delivery) { d.Headers["webhook-timestamp"] += "0" })
	spoil("v1, alone", func(d *delivery) { d.Headers["webhook-signature"] = "v1," })
	spoil("half a signature", func(d *delivery) { d.Headers["webhook-signature"] = d.Headers["webhook-signature"][:20] })
	spoil("another version", func(d *delivery) {
		d.Headers["webhook-signature"] = strings.Replace(d.Headers["webhook-signature"], "v1", "v2", 1)
	})
	return all
}

// tellApart gives program, which verifies by a snippet of the documentation, each
// delivery as a line of JSON, and holds its answers, a line each, against what
// they should be.
func tellApart(t *testing.T, name string, args ...string) {
	t.Helper()
	all := deliveries()
	var in strings.Builder
	for _, d := range all {
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(b, '\n'))
	}
	out, failed := run(t, in.String(), name, args...)
	said := strings.Split(strings.TrimSpace(out), "\n")
	if failed || len(said) != len(all) {
		t.Fatalf("%s", out)
	}
	for i, d := range all {
		if ok := said[i] == "pão de queijo"; ok != d.good {
			t.Errorf("%s: %s (%v)", d.name, said[i], slices.Collect(maps.Values(d.Headers)))
		}
	}
}

func write(t *testing.T, dir, name string, parts ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(strings.Join(parts, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPythonVerifiesWebhooksAsTheDocumentationSays(t *testing.T) {
	asked(t)
	const drive = `
import json, sys
for line in sys.stdin:
    d = json.loads(line)
    try:
        print(verified(d["secret"], d["headers"], d["body"].encode())["data"]["item"])
    except Exception as e:
        print("refused:", type(e).__name__)
`
	all := snippets(t, "python")
	if len(all) != 2 {
		t.Fatalf("%d snippets, want one with the library and one without", len(all))
	}
	python := filepath.Join(part(t, "webhooks-python"), "bin", "python")
	for _, code := range all {
		tellApart(t, python, write(t, t.TempDir(), "verify.py", code, drive))
	}
}

func TestNodeVerifiesWebhooksAsTheDocumentationSays(t *testing.T) {
	asked(t)
	node := command(t, "node", "nodejs")
	const drive = `
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const d = JSON.parse(line);
  try {
    console.log(verified(d.secret, d.headers, Buffer.from(d.body)).data.item);
  } catch (e) {
    console.log("refused:", e.name);
  }
}
`
	all := snippets(t, "js")
	if len(all) != 1 {
		t.Fatalf("%d snippets", len(all))
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(part(t, "webhooks-node"), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	tellApart(t, node, write(t, dir, "verify.mjs", all[0], drive))
}

func TestGoVerifiesWebhooksAsTheDocumentationSays(t *testing.T) {
	asked(t)
	const head = `package main

import ("bufio"; "encoding/json"; "fmt"; "io"; "net/http"; "net/http/httptest"; "os"; "strings"; "github.com/waybillhq/waybill/webhook/sign")
`
	const drive = `
func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var d struct { Secret, Body string; Headers map[string]string }
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil { panic(err) }
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(d.Body))
		for k, v := range d.Headers { r.Header.Set(k, v) }
		body, err := verified(httptest.NewRecorder(), r, d.Secret)
		if err != nil { fmt.Println("refused:", err); continue }
		var in struct{ Data struct{ Item string } }
		if err := json.Unmarshal(body, &in); err != nil { panic(err) }
		fmt.Println(in.Data.Item)
	}
}
`
	all := snippets(t, "go")
	if len(all) != 1 {
		t.Fatalf("%d snippets", len(all))
	}
	tellApart(t, command(t, "go", "golang-go"), "run", write(t, t.TempDir(), "main.go", head, all[0], drive))
}
