package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// registrations is how many schemas each process registers, and how often one
// is killed: a few at every change, WAYBILL_TEST_REGISTRATIONS for more.
func registrations() int {
	if n, err := strconv.Atoi(os.Getenv("WAYBILL_TEST_REGISTRATIONS")); err == nil {
		return n
	}
	return 200
}

// claims is what registries answered: the id of each text, the text of each id.
type claims struct {
	mu    sync.Mutex
	texts map[int]string
	ids   map[string]int
	under map[[2]string]bool // subject and text
}

func newClaims() *claims {
	return &claims{texts: map[int]string{}, ids: map[string]int{}, under: map[[2]string]bool{}}
}

func (c *claims) add(t *testing.T, subject, text string, id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.texts[id]; ok && old != text {
		t.Errorf("id %d was given to %s and to %s", id, old, text)
	}
	c.texts[id], c.ids[text] = text, id
	c.under[[2]string{subject, text}] = true
}

// check asks a registry for everything that was answered.
func (c *claims) check(t *testing.T, r *registry) string {
	t.Helper()
	// What the other has written is there once we have written after it.
	r.want("PUT", "/config", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	_, all := r.ask("GET", "/schemas?deleted=true", "")
	var listed []struct {
		Subject string `json:"subject"`
		ID      int    `json:"id"`
		Version int    `json:"version"`
		Schema  string `json:"schema"`
	}
	if err := json.Unmarshal([]byte(all), &listed); err != nil {
		t.Fatal(err)
	}
	there, ids := map[[2]string]int{}, map[int]string{}
	for _, v := range listed {
		key := [2]string{v.Subject, v.Schema}
		if _, twice := there[key]; twice {
			t.Errorf("%v is there twice", key)
		}
		there[key] = v.ID
		if old, ok := ids[v.ID]; ok && old != v.Schema {
			t.Errorf("id %d is %s and %s", v.ID, old, v.Schema)
		}
		ids[v.ID] = v.Schema
	}
	for key := range c.under {
		if id, ok := there[key]; !ok || c.texts[id] != key[1] {
			t.Errorf("%v was answered and is not there, or as %d", key, id)
		}
	}
	return all
}

// duelText is one of n texts, most of which both processes register.
func duelText(i int) string { return fmt.Sprintf(`{"type":"enum","name":"E%d","symbols":["A"]}`, i) }

func TestTwoProcessesOnOneTopicGiveNoIdTwice(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	a, b := startProcess(t, e, topic), startProcess(t, e, topic)
	c, n := newClaims(), registrations()
	var wg sync.WaitGroup
	for who, p := range []*process{a, b} {
		next := make(chan int)
		wg.Go(func() {
			defer close(next)
			for i := range n {
				next <- i
			}
		})
		for range 4 {
			wg.Go(func() {
				for i := range next {
					// Half of the texts are both processes', under the same
					// subject or under another.
					text := duelText(i)
					if i%2 == 1 {
						text = duelText(i + n*(who+1))
					}
					subject := fmt.Sprintf("s%d", (i*7+who*(i%3))%20)
					id, err := p.try(t.Context(), subject, text)
					if err != nil || id == 0 {
						t.Errorf("%s: %d %v", text, id, err)
						continue
					}
					c.add(t, subject, text, id)
				}
			})
		}
	}
	wg.Wait()
	ofA, ofB := c.check(t, a.registry), c.check(t, b.registry)
	if ofA != ofB {
		t.Error("the two processes disagree")
	}
	if late := startProcess(t, e, topic); c.check(t, late.registry) != ofA {
		t.Error("a process that starts later disagrees")
	}
	t.Logf("%d registrations, %d ids", 2*n, len(c.texts))
}

func TestKilledProcessKeepsWhatItAnswered(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	c, steady := newClaims(), startProcess(t, e, topic)
	last := 0
	for round := range max(3, registrations()/100) {
		victim := startProcess(t, e, topic)
		var wg sync.WaitGroup
		for who, p := range []*process{victim, steady} {
			wg.Go(func() {
				for i := range 40 {
					text, subject := duelText(round*1000+i/(who+1)), fmt.Sprintf("s%d", i%5)
					id, err := p.try(t.Context(), subject, text)
					if err != nil {
						t.Errorf("%s: %v", text, err)
					}
					if id == 0 {
						return
					}
					c.add(t, subject, text, id)
					if who == 0 && i == 5+round*3%30 {
						// In the middle of the next registration.
						wg.Go(func() { _, _ = p.try(t.Context(), subject, duelText(round*1000+900)) })
						victim.kill()
					}
				}
			})
		}
		wg.Wait()
		if len(c.texts) <= last {
			t.Fatal("nothing was registered")
		}
		last = len(c.texts)
	}
	if c.check(t, steady.registry) != c.check(t, startProcess(t, e, topic).registry) {
		t.Error("who saw the kills and who starts after them disagree")
	}
}
