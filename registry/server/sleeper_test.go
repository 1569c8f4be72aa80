package server

import (
	"net/http"
	"testing"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// A registry may sleep between looking at the topic and writing to it, for as
// long as it likes. Whatever it decided on may be gone when it wakes; then its
// record must not hold.
func TestWhoSleptBetweenReadingAndWritingIsRefused(t *testing.T) {
	t.Parallel()
	e := brokertest.New(t)
	const mine = `{"type":"record","name":"Mine","fields":[]}`
	register := func(subject, text string) step {
		return step{http.MethodPost, "/subjects/" + subject + "/versions", text, `{"schema":` + string(encode(text)) + `}`}
	}
	call := func(method, path, body string) step { return step{method, path, "", body} }
	referring := call(http.MethodPost, "/subjects/user/versions",
		`{"schema":"{\"type\":\"record\",\"name\":\"U\",\"fields\":[{\"name\":\"b\",\"type\":\"Base\"}]}","references":[{"name":"Base","subject":"base","version":1}]}`)
	base := register("base", `{"type":"record","name":"Base","fields":[]}`)
	add := func(subject, text string) func(*state) ([]draft, error) {
		return func(st *state) ([]draft, error) {
			next, err := st.admit(subject, asked{content: &content{text: text}})
			if err != nil {
				return nil, err
			}
			return []draft{{schemaKey(subject, next.number), next.value(false)}}, nil
		}
	}
	for _, c := range []struct {
		name   string
		before []step
		decide func(*state) ([]draft, error)
		asleep []step
		holds  bool
	}{
		{"nothing happened", nil, add("one", mine), nil, true},
		{"another subject's config", nil, add("one", mine), []step{call(http.MethodPut, "/config/two", `{"compatibility":"NONE"}`)}, true},
		{"its id was given", nil, add("one", mine), []step{register("two", `"int"`)}, false},
		{"its id was given to the same schema", nil, add("one", mine), []step{register("two", mine)}, true},
		{"its id was given, and the schema erased", nil, add("one", mine), []step{
			register("two", `"int"`), call(http.MethodDelete, "/subjects/two", ""), call(http.MethodDelete, "/subjects/two?permanent=true", ""),
		}, false},
		{"its version was given", nil, add("one", mine), []step{register("one", mine), register("two", `"int"`), register("one", `"long"`)}, false},
		{"its subject became read-only", nil, add("one", mine), []step{call(http.MethodPut, "/mode/one", `{"mode":"READONLY"}`)}, false},
		{"its subject got another level", nil, add("one", mine), []step{call(http.MethodPut, "/config/one", `{"compatibility":"FULL"}`)}, false},
		{"all became read-only", nil, add("one", mine), []step{call(http.MethodPut, "/mode", `{"mode":"READONLY"}`)}, false},
		{"all got another level", nil, add("one", mine), []step{call(http.MethodPut, "/config", `{"compatibility":"FULL"}`)}, false},
		{
			"what it refers to was deleted",
			[]step{base},
			func(*state) ([]draft, error) {
				return []draft{{schemaKey("user", 1), encode(schemaValue{Subject: "user", Version: 1, ID: 2, Schema: `{"type":"record","name":"U","fields":[{"name":"b","type":"Base"}]}`, References: []reference{{"Base", "base", 1}}})}}, nil
			},
			[]step{call(http.MethodDelete, "/subjects/base", "")},
			false,
		},
		{
			"what it deletes is referred to",
			[]step{base},
			func(st *state) ([]draft, error) { return st.remove(false, st.find("base", 1)) },
			[]step{referring},
			false,
		},
		{
			"what it erases is back",
			[]step{base, call(http.MethodDelete, "/subjects/base", "")},
			func(st *state) ([]draft, error) {
				return []draft{{schemaKey("base", 1), nil}}, nil
			},
			[]step{base},
			false,
		},
		{
			"it opens for ids from elsewhere, and a schema came", nil,
			func(*state) ([]draft, error) {
				return []draft{{ruleKey(keyMode, ""), rules{mode: importing}.value(keyMode, "")}}, nil
			},
			[]step{register("two", `"int"`)},
			false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			topic := brokertest.Topic(t, "schemas")
			sleeper, stop := run(t, e, topic)
			defer stop()
			other, stop := run(t, e, topic)
			defer stop()
			perform(t, sleeper, c.before)
			drafts, after, err := sleeper.decide(c.decide)
			if err != nil {
				t.Fatal(err)
			}
			catchUp(t, other)
			perform(t, other, c.asleep)
			holds, err := sleeper.commit(t.Context(), stamp{after: after, intent: change}, drafts...)
			if err != nil || holds != c.holds {
				t.Fatalf("holds %t, want %t: %v", holds, c.holds, err)
			}
			// Whoever writes next mends the place; then all agree, compacted or not.
			if err := sleeper.repair(t.Context()); err != nil {
				t.Fatal(err)
			}
			catchUp(t, other)
			if got, want := sleeper.state.dump(), other.state.dump(); got != want {
				t.Errorf("%s\nand\n%s", got, want)
			}
			replayCompacted(t, read(t, e, topic), other.state.dump())
		})
	}
}

func perform(t *testing.T, s *Server, steps []step) {
	t.Helper()
	for _, st := range steps {
		if code, body := do(s, st); code != http.StatusOK {
			t.Fatalf("%s %s: %d %s", st.method, st.path, code, body)
		}
	}
}

// catchUp has a server read all that was written before.
func catchUp(t *testing.T, s *Server) {
	t.Helper()
	if _, err := s.commit(t.Context(), stamp{after: -1, intent: change}, draft{key: noopKey()}); err != nil {
		t.Fatal(err)
	}
}
