package broker

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Outages keeps clients from filling the log while a broker is away: that it
// cannot be reached is said when that begins, and then once a minute. Clients
// that share one say it together once.
type Outages struct {
	mu   sync.Mutex
	away map[string]*outage // by address
	now  func() time.Time
}

// outage is one address that is not reached.
type outage struct {
	told   time.Time
	untold int // since then
}

// outageEvery is how often an outage is told while it lasts.
const outageEvery = time.Minute

// maxOutages bounds the addresses that are remembered; a client learns them from
// brokers, which may say whatever they like.
const maxOutages = 1000

// NewOutages is for [Config.Outages].
func NewOutages() *Outages { return &Outages{away: map[string]*outage{}, now: time.Now} }

// unreached is how the client's word of it begins.
const unreached = "unable to open connection to broker"

// lets tells whether a line is to be said, and how many were not since the last.
func (o *Outages) lets(text string, keyvals []any) (say bool, untold int) {
	if !strings.HasPrefix(text, unreached) {
		return true, 0
	}
	addr := ""
	for i := 0; i+1 < len(keyvals); i += 2 {
		if keyvals[i] == "addr" {
			addr, _ = keyvals[i+1].(string)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.away[addr]
	switch {
	case at == nil && len(o.away) >= maxOutages:
		return true, 0
	case at == nil:
		o.away[addr] = &outage{told: o.now()}
		return true, 0
	case o.now().Sub(at.told) < outageEvery:
		at.untold++
		return false, 0
	}
	untold = at.untold
	at.told, at.untold = o.now(), 0
	return true, untold
}

// OnBrokerConnect implements kgo.HookBrokerConnect: the outage is over, and
// another is told at once.
func (o *Outages) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.away, net.JoinHostPort(meta.Host, strconv.Itoa(int(meta.Port))))
}
