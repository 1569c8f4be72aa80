package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/waybillhq/waybill/logistica/api"
)

// late asks for an order of which nothing but the head has come, and returns
// once the body is waited for.
func (m merchant) late(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := m.say(t, "POST /v1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+m.key+"\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: "+strconv.Itoa(len(orderBody))+"\r\n\r\n")
	r := bufio.NewReader(c)
	for _, want := range []string{"HTTP/1.1 100 Continue\r\n", "\r\n"} {
		if line, err := r.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%q, %v", line, err)
		}
	}
	return c, r
}

// A body that is awaited is no work: few callers who send theirs slowly must not
// have the places of all. That the answer to another came before they were given
// up shows it; a machine that is too slow for that has more than one try.
func TestASlowBodyTakesNoPlaceAtWork(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(_ *api.Deps, c *api.Config) { c.AtWork, c.AtWorkPerCaller = 2, 1 })
	one, two, other := b.merchant(t, "Padaria"), b.merchant(t, "Farmácia"), b.merchant(t, "Mercado")
	for range 4 {
		inTime := true
		var conns []net.Conn
		var answers []*bufio.Reader
		for _, m := range []merchant{one, two} {
			c, r := m.late(t)
			conns, answers = append(conns, c), append(answers, r)
		}
		other.ask(t, "GET", "/v1/orders", "").into(t, http.StatusOK, new(map[string]any))
		for i, c := range conns {
			_, _ = io.WriteString(c, orderBody) // it may have been given up
			res, err := http.ReadResponse(answers[i], nil)
			inTime = inTime && err == nil && res.StatusCode == http.StatusCreated
			if err == nil {
				_ = res.Body.Close()
			}
			_ = c.Close()
		}
		if inTime {
			return
		}
	}
	t.Error("another's request waits for their bodies")
}
