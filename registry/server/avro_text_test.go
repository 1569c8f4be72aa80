package server

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// normalForms are texts and how they are kept when they are normalized.
func normalForms() map[string]string {
	return map[string]string{
		`"int"`:                               `"int"`,
		`{"type":"string"}`:                   `"string"`,
		`["null", {"type":"int"}]`:            `["null","int"]`,
		`{"type":"int","name":"n","doc":"d"}`: `"int"`,
		`{"type":"long","logicalType":"timestamp-millis","name":"n"}`:      `{"type":"long","logicalType":"timestamp-millis"}`,
		`{"type":"array","items":"int","name":"n","doc":"d"}`:              `{"type":"array","items":"int"}`,
		`{"items":"int","type":"array"}`:                                   `{"type":"array","items":"int"}`,
		`{"values":{"type":"long"},"type":"map"}`:                          `{"type":"map","values":"long"}`,
		`{"symbols":["B","A"],"name":"x.E","type":"enum"}`:                 `{"type":"enum","name":"E","namespace":"x","symbols":["B","A"]}`,
		`{"default":"A","symbols":["A"],"name":"E","type":"enum"}`:         `{"type":"enum","name":"E","symbols":["A"],"default":"A"}`,
		`{"size":4,"aliases":["x.G","H"],"name":"x.F","type":"fixed"}`:     `{"type":"fixed","name":"F","namespace":"x","size":4,"aliases":["G","H"]}`,
		`{"logicalType":"decimal","precision":9,"scale":2,"type":"bytes"}`: `{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}`,
		`{"fields":[],"doc":"d","name":"n.R","type":"record"}`:             `{"type":"record","name":"R","namespace":"n","doc":"d","fields":[]}`,
		`{"type":"record","name":"R","namespace":"","fields":[]}`:          `{"type":"record","name":"R","fields":[]}`,
		`{"type":"record","name":"n.R","fields":[{"order":"ascending","default":1,"doc":"d","type":"int","name":"a"},{"order":"ignore","type":"int","name":"b"}]}`://
		`{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int","doc":"d","default":1},{"name":"b","type":"int","order":"ignore"}]}`,
		`{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"record","name":"n.I","fields":[]}},{"name":"b","type":"n.I"},{"name":"c","type":["null","n.R"],"default":null}]}`://
		`{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"record","name":"I","fields":[]}},{"name":"b","type":"I"},{"name":"c","type":["null","R"],"default":null}]}`,
		`{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"enum","name":"m.E","symbols":["A"]}},{"name":"b","type":"m.E"}]}`://
		`{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"enum","name":"E","namespace":"m","symbols":["A"]}},{"name":"b","type":"m.E"}]}`,
		`{"owner":"x","type":"record","name":"R","fields":[{"pii":true,"name":"a","aliases":["b"],"type":{"unit":"ms","type":"long"}}]}`://
		`{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"long","unit":"ms"},"aliases":["b"],"pii":true}],"owner":"x"}`,
	}
}

func TestNormalFormIsWhatJavaWrites(t *testing.T) {
	var in []string
	for text, want := range normalForms() {
		m, err := avroLanguage{}.begin().read("", text, false)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := m.normal()
		if err != nil || got != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", text, got, err, want)
		}
		in = append(in, text)
	}
	for i, got := range askJava(t, in) {
		if want := normalForms()[in[i]]; got != want {
			t.Errorf("%s:\nJava %s\nwant %s", in[i], got, want)
		}
	}
}

// askJava has Avro for Java write schemas. It skips the test where it cannot.
func askJava(t *testing.T, schemas []string) []string {
	t.Helper()
	const home = "../compat/testdata/java/"
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("no java to compare with; install it: apt-get install openjdk-17-jre-headless")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	jars, err := exec.CommandContext(ctx, home+"avro.sh").Output()
	if err != nil {
		t.Skipf("no Avro for Java to compare with: %v", err)
	}
	run := exec.CommandContext(ctx, "java", "-cp", strings.TrimSpace(string(jars))+"/*", home+"Compat.java")
	run.Stdin = strings.NewReader(strings.Join(schemas, "\n") + "\n")
	out, err := run.Output()
	if err != nil {
		t.Skipf("java does not run a source file: %v", err)
	}
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(answers) != len(schemas) {
		t.Fatalf("%d answers to %d schemas", len(answers), len(schemas))
	}
	return answers
}
