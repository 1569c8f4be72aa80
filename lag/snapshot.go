package lag

import "time"

// Snapshot is one round's sight of all groups. A nil figure is unknown.
type Snapshot struct {
	At      time.Time `json:"at"`
	Groups  []Group   `json:"groups"` // by name
	Error   string    `json:"error,omitempty"`
	LeftOut int       `json:"left_out,omitempty"` // pairs past Config.MaxPartitions
	Round   Round     `json:"round"`
}

// Round is what a look cost.
type Round struct {
	Number   int64   `json:"number"`
	Took     float64 `json:"took_seconds"`
	Requests int64   `json:"requests"` // to brokers, reads included
	Reads    int     `json:"reads"`    // records read for their timestamps
}

// Group is a consumer group over all its partitions.
type Group struct {
	Name    string `json:"group"`
	Members *int   `json:"members"`
	State   State  `json:"state"` // the gravest of its partitions'

	Lag     *int64   `json:"lag"`            // events behind; nil as soon as one partition's is unknown
	Seconds *float64 `json:"seconds_behind"` // the greatest that is known
	Exact   bool     `json:"exact"`          // of Seconds
	Partial bool     `json:"partial"`        // some partition is unknown

	In    *float64 `json:"in_per_second"`  // events written to its partitions
	Out   *float64 `json:"out_per_second"` // events it passed
	Drain *float64 `json:"drain_seconds"`  // until it has caught up at these rates; nil: never, or unknown

	ParkedKeys   *int64 `json:"parked_keys"`
	ParkedEvents *int64 `json:"parked_events"`
	DeadLetters  *int64 `json:"dead_letters"` // ever written; nil: no topic of them

	// Capacity is the events a second that one member passed when there was
	// last more than enough to do; nil: never seen.
	Capacity *float64 `json:"capacity_per_member"`

	History    []Moment    `json:"history"`
	Partitions []Partition `json:"partitions,omitempty"` // by topic and number
	Error      string      `json:"error,omitempty"`
}

// Moment is a group's lag some time ago.
type Moment struct {
	At      time.Time `json:"at"`
	Lag     *int64    `json:"lag"`
	Seconds *float64  `json:"seconds_behind"`
}

// Partition is a group's place on one partition. A nil figure is unknown.
type Partition struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`

	Start     *int64 `json:"start"`
	Committed *int64 `json:"committed"` // nil too where the group never committed
	End       *int64 `json:"end"`
	Ours      bool   `json:"ours"` // Committed is the database's word, not the broker's

	Lag     *int64   `json:"lag"` // events that can still be read
	Seconds *float64 `json:"seconds_behind"`
	Exact   bool     `json:"exact"` // Seconds is of the very record, not estimated

	In    *float64 `json:"in_per_second"`
	Out   *float64 `json:"out_per_second"`
	Drain *float64 `json:"drain_seconds"` // nil: never at these rates, or unknown

	State   State     `json:"state"`
	Since   time.Time `json:"since"` // of the state
	At      *int64    `json:"at,omitempty"`
	Why     string    `json:"why,omitempty"` // for people: what the state means here
	Lost    int64     `json:"lost,omitempty"`
	Blocked *Blocked  `json:"blocked,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// Blocked is the key that has been waiting longest on a partition.
type Blocked struct {
	Keys     int64     `json:"keys"`   // of the partition that wait
	Events   int64     `json:"events"` // parked on it in all
	Key      string    `json:"key"`
	Offset   int64     `json:"offset"`
	Error    string    `json:"error"`
	Attempts int       `json:"attempts"`
	Since    time.Time `json:"since"`
}

// draining tells whether a lag shrinks; nil if that is unknown.
func draining(in, out *float64) *bool {
	if in == nil || out == nil {
		return nil
	}
	d := *out > *in
	return &d
}

// Draining tells whether the group's lag shrinks; nil if that is unknown.
func (g *Group) Draining() *bool { return draining(g.In, g.Out) }

// drainIn is the time to read lag events at these rates.
func drainIn(lag *int64, in, out *float64) *float64 {
	switch {
	case lag == nil:
		return nil
	case *lag == 0:
		return new(float64)
	case in == nil || out == nil || *out-*in < 1e-3:
		return nil
	}
	d := float64(*lag) / (*out - *in)
	return &d
}
