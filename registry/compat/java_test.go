package compat_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/registry/compat"
)

// pair is what Java is asked: does a reader read what a writer wrote?
type pair struct{ reader, writer string }

// askJava asks Apache Avro for Java about all pairs at once. It skips the test
// where there is no Java, or where its jars are not here and cannot be had.
func askJava(t *testing.T, pairs []pair) []string {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("no java to compare with; install it: apt-get install openjdk-17-jre-headless")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var why bytes.Buffer
	find := exec.CommandContext(ctx, "testdata/java/avro.sh")
	find.Stderr = &why
	jars, err := find.Output()
	if err != nil {
		t.Skipf("no Avro for Java to compare with: %s", why.String())
	}
	var in bytes.Buffer
	for _, p := range pairs {
		fmt.Fprintf(&in, "%s\t%s\n", p.reader, p.writer)
	}
	run := exec.CommandContext(ctx, "java", "-cp", strings.TrimSpace(string(jars))+"/*", "testdata/java/Compat.java")
	run.Stdin, run.Stderr = &in, &why
	out, err := run.Output()
	if err != nil {
		t.Skipf("java does not run a source file: %v: %s", err, why.String())
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != len(pairs) {
		t.Fatalf("%d answers to %d pairs: %s", len(answers), len(pairs), why.String())
	}
	return answers
}

// reads is our own answer.
func reads(t *testing.T, p pair) (bool, string) {
	t.Helper()
	reader, err := avro.Parse(p.reader)
	if err != nil {
		t.Fatalf("%s: %v", p.reader, err)
	}
	writer, err := avro.Parse(p.writer)
	if err != nil {
		t.Fatalf("%s: %v", p.writer, err)
	}
	reasons := compat.Check(compat.Backward, reader, []compat.Version{{Number: 1, Schema: writer}})
	return len(reasons) == 0, fmt.Sprint(reasons)
}

// Java is asked once, for its start takes most of the time.
func TestJavaJudgesAsWeDo(t *testing.T) {
	var pairs []pair
	for _, c := range rules() {
		pairs = append(pairs, pair{c.later, c.earlier}, pair{c.earlier, c.later})
	}
	known := len(pairs)
	for seed := range 1500 {
		pairs = append(pairs, pairsOf().Example(seed))
	}
	answers := askJava(t, pairs)
	for i, c := range rules() {
		agree(t, c.name+", backward", pairs[2*i], c.backward, answers[2*i], c.java)
		agree(t, c.name+", forward", pairs[2*i+1], c.forward, answers[2*i+1], c.java)
	}
	compatible := 0
	for i := known; i < len(pairs); i++ {
		ours, why := reads(t, pairs[i])
		agree(t, "a generated pair "+why, pairs[i], ours, answers[i], "")
		if ours {
			compatible++
		}
	}
	if n := len(pairs) - known; compatible < n/10 || compatible > n*9/10 {
		t.Errorf("only one verdict comes up: %d of %d are compatible", compatible, n)
	}
}

// agree compares verdicts; they must differ where there is a reason to.
func agree(t *testing.T, name string, p pair, ours bool, java, differs string) {
	t.Helper()
	same := (java == "COMPATIBLE") == ours && !strings.HasPrefix(java, "INVALID")
	if same != (differs == "") {
		t.Errorf("%s: we say %t, Java says %s\nreader %s\nwriter %s", name, ours, java, p.reader, p.writer)
	}
}
