package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/webhook/sign"
)

// runners is how an example is run: as a module of which verify is called for
// each of what stands in cases.json.
var runners = map[string]struct {
	program, module, file, main string
}{
	"Python": {"python3", "verify.py", "main.py", `
import json, verify
for c in json.load(open("cases.json")):
    print(verify.verify(c["key"], c["headers"], c["body"].encode()))
`},
	"Node": {"node", "verify.mjs", "main.mjs", `
import { readFileSync } from "node:fs";
import { verify } from "./verify.mjs";
for (const c of JSON.parse(readFileSync("cases.json"))) console.log(verify(c.key, c.headers, Buffer.from(c.body)));
`},
}

type verification struct {
	Key     string            `json:"key"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// signedCases are calls of which the first two are ours: signed by k, and during a
// rotation. The others were altered, are old, or are another's.
func signedCases(k, another sign.Key) []verification {
	signed := func(at time.Time, body string, keys ...sign.Key) verification {
		h := http.Header{}
		sign.Headers(h, keys, "01936f5e-7c1a-7d31-a8a4-0b5cf3c0f2de", at, []byte("{\"a\":\"ç\"}"))
		v := verification{k.Verification(), map[string]string{}, body}
		for name := range h {
			v.Headers[strings.ToLower(name)] = h.Get(name)
		}
		return v
	}
	now, body := time.Now(), "{\"a\":\"ç\"}"
	return []verification{
		signed(now, body, k), signed(now, body, another, k),
		signed(now, body+" ", k), signed(now.Add(-time.Hour), body, k), signed(now, body, another),
	}
}

func TestExamplesVerifyWhatIsSignedAndNothingElse(t *testing.T) {
	_, url := serve(t)
	ctx := browser.New(t)
	browser.Open(ctx, t, url+"/unit.html")
	keys := map[string][2]sign.Key{"hmac": {sign.NewHMAC(), sign.NewHMAC()}, "ed25519": {sign.NewEd25519(), sign.NewEd25519()}}
	for algorithm, pair := range keys {
		for language, r := range runners {
			t.Run(algorithm+" in "+language, func(t *testing.T) {
				path, err := exec.LookPath(r.program)
				if err != nil {
					t.Skip(r.program + " is not installed")
				}
				if algorithm == "ed25519" && language == "Python" && exec.CommandContext(t.Context(), path, "-c", "import cryptography").Run() != nil {
					t.Skip("Python has no package cryptography")
				}
				module := browser.Eval[string](ctx, t, `import("/assets/js/hook-snippets.js").then((m) => m.snippets.`+algorithm+`.`+language+`)`)
				dir := t.TempDir()
				cases, err := json.Marshal(signedCases(pair[0], pair[1]))
				must(t, err)
				for name, text := range map[string]string{r.module: module, r.file: r.main, "cases.json": string(cases)} {
					must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
				}
				cmd := exec.CommandContext(t.Context(), path, r.file)
				cmd.Dir = dir
				var said bytes.Buffer
				cmd.Stderr = &said
				out, err := cmd.Output()
				if got := strings.Join(strings.Fields(strings.ToLower(string(out))), " "); err != nil || got != "true true false false false" {
					t.Errorf("%v: %s\n%s", err, got, said.String())
				}
			})
		}
	}
}
