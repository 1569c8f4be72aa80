package cli

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/bench/consume"
)

// aLoad is a run as one might have been, with a moment of which nothing is
// known.
func aLoad() consume.LoadResult {
	r := consume.LoadResult{
		Events: 1000, Produce: 240, Calm: 40, Burst: 10, Handler: 50, Rule: "time lag > 2s & more", MaxLag: 300, MaxAge: 2.5,
		Fired: amount(4.0), Over: amount(12.0), Drained: amount(13.0), Least: 4, Most: 9, Last: 6, Cores: 2, Took: 25,
		Marks: []consume.LoadMark{{At: 4, Text: "alert fires"}, {At: 5, Workers: 9, Text: "300 behind"}, {At: 15, Workers: 6, Text: "little to do"}},
	}
	for i := range 20 {
		n := int64(max(0, 300-40*max(i-7, 7-i)))
		s := consume.LoadSample{At: float64(i), Lag: &n, Seconds: amount(float64(n) / 120), Workers: 4}
		if i >= 5 {
			s.Workers = 9
		}
		if i == 3 {
			s.Lag, s.Seconds = nil, nil
		}
		r.Samples = append(r.Samples, s)
	}
	return r
}

func TestALoadIsDrawnOnTheTerminal(t *testing.T) {
	var out bytes.Buffer
	if err := printLoad(&out, aLoad()); err != nil {
		t.Fatal(err)
	}
	golden(t, "bench_load.txt", out.String())
}

func TestThePictureOfALoadIsWhole(t *testing.T) {
	picture := drawLoad(aLoad())
	d := xml.NewDecoder(strings.NewReader(picture))
	seen := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, picture)
		}
		if e, ok := token.(xml.StartElement); ok {
			seen[e.Name.Local]++
		}
	}
	if seen["svg"] != 1 || seen["title"] != 1 || seen["desc"] != 1 || seen["path"] < 10 || seen["image"]+seen["script"] > 0 {
		t.Errorf("%v", seen)
	}
	for _, want := range []string{
		"events behind", "seconds behind", "workers", "seconds since the load began", "alert fires at 4.0 s, over at 12.0 s",
		"prefers-color-scheme:dark", "time lag &gt; 2s &amp; more",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	if strings.Contains(picture, "NaN") || strings.Contains(picture, "href") {
		t.Error("it holds what cannot be drawn, or another's address")
	}
}

func TestAPictureWithoutAnAlertHasNone(t *testing.T) {
	r := aLoad()
	r.Fired, r.Over, r.Drained = nil, nil, nil
	if picture := drawLoad(r); strings.Contains(picture, `class="alert"`) || !strings.Contains(picture, "The alert fires never") {
		t.Error(picture)
	}
}
