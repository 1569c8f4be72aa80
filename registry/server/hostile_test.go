package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A page of another site may have its name resolve to this machine; its
// browser then takes the registry for the page's own origin.
func TestARequestUnderAForeignNameIsRefusedOnLoopback(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	port := r.url[strings.LastIndexByte(r.url, ':'):]
	for host, want := range map[string]int{
		"evil.example" + port: 421, "evil.example": 421, "127.0.0.1.evil.example" + port: 421, "localhost.evil.example": 421,
		"evillocalhost": 421, "127.0.0.1" + port: 200, "localhost" + port: 200, "LOCALHOST": 200, "localhost.": 200,
		"reg.localhost" + port: 200, "[::1]" + port: 200, "192.0.2.1": 200,
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+"/subjects", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := r.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, resp.StatusCode, want)
		}
	}
}

// Each schema refers to the one before it twice: as many ways lead to the first
// as two to the power of their number.
func TestReferencesThatMeetAgainAreReadOnce(t *testing.T) {
	r := fresh(t)
	r.want("POST", "/subjects/d0/versions", `{"schema":"{\"type\":\"record\",\"name\":\"D0\",\"fields\":[]}"}`, 200, `{"id":1}`)
	began := processorTime(t)
	for i := 1; i <= 30; i++ {
		body := fmt.Sprintf(`{"schema":"{\"type\":\"record\",\"name\":\"D%d\",\"fields\":[{\"name\":\"a\",\"type\":\"D%d\"}]}",`+
			`"references":[{"name":"D%d","subject":"d%d","version":1},{"name":"x","subject":"d%d","version":1}]}`, i, i-1, i-1, i-1, i-1)
		if status, got := r.ask("POST", fmt.Sprintf("/subjects/d%d/versions", i), body); status != 200 {
			t.Fatalf("%d: %d %s", i, status, got)
		}
		if took := processorTime(t) - began; took > 10*time.Second {
			t.Fatalf("%d schemas took %s", i, took)
		}
	}
}

func TestANameThatCannotBeWrittenDownIsNoSubject(t *testing.T) {
	t.Parallel()
	r := fresh(t)
	for _, name := range []string{"%ff", "a%00b", "a%0Ab", "%7f", strings.Repeat("a", 1025)} {
		r.refused("POST", "/subjects/"+name+"/versions", schema(fieldA), 422, 42208)
		r.refused("PUT", "/config/"+name, `{"compatibility":"NONE"}`, 422, 42208)
	}
	r.want("GET", "/subjects", "", 200, `[]`)
	r.want("POST", "/subjects/topic%2F1%20-%20%C3%A9-value/versions", schema(fieldA), 200, `{"id":1}`)
}

// A small request may ask for much work: deep nesting, names that hold names,
// many references.
func TestHostileSchemasCostLittle(t *testing.T) {
	r := fresh(t)
	deep := strings.Repeat(`{"type":"array","items":`, 30_000) + `"int"` + strings.Repeat(`}`, 30_000)
	nested := `"int"`
	for i := range 300 {
		nested = fmt.Sprintf(`{"type":"record","name":"R%d","fields":[{"name":"f","type":%s}]}`, i, nested)
	}
	doubling := `{"type":"record","name":"B0","fields":[{"name":"x","type":"int"}]}`
	for i := 1; i < 40; i++ {
		doubling = fmt.Sprintf(`{"type":"record","name":"B%d","fields":[{"name":"a","type":%s},{"name":"b","type":"B%d"}]}`, i, doubling, i-1)
	}
	var branches []string
	for i := range 5000 {
		branches = append(branches, fmt.Sprintf(`{"type":"enum","name":"E%d","symbols":["A"]}`, i))
	}
	wide := "[" + strings.Join(branches, ",") + "]"
	refs := strings.Repeat(`{"name":"x","subject":"nested","version":1},`, 10_000)
	began := processorTime(t)
	for name, text := range map[string]string{"deep": deep, "nested": nested, "doubling": doubling, "wide": wide, "lists": strings.Repeat("[", 400_000)} {
		for range 2 { // the second is compared with the first
			if status, got := r.ask("POST", "/subjects/"+name+"/versions", request(text)); status != 200 && status != 422 {
				t.Errorf("%s: %d %.200s", name, status, got)
			}
			if status, got := r.ask("POST", "/compatibility/subjects/"+name+"/versions?verbose=true", request(text)); status != 200 {
				t.Errorf("%s: %d %.200s", name, status, got)
			}
		}
	}
	body := `{"schema":"\"int\"","references":[` + refs[:len(refs)-1] + `]}`
	if status, got := r.ask("POST", "/subjects/refs/versions", body); status != 200 && status != 422 {
		t.Errorf("references: %d %.200s", status, got)
	}
	if took := processorTime(t) - began; took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

// processorTime is what this process has used of the processors: on a machine
// with much else to do the clock says nothing.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
