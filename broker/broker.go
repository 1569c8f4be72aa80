// Package broker is being a client of a broker that speaks Kafka's protocol:
// connecting, declaring topics, and asking what is there.
//
// It promises that a declared topic exists after Declare returned, that a
// topic which differs from its declaration is reported with the difference
// and its mend, and that a figure nobody knows is reported as unknown, never
// as zero. It does not change a topic that already exists, and it does not
// wrap producing or consuming: that is what the franz-go client is for.
//
// The same code serves Apache Kafka, Redpanda and the single-node broker of
// package embedded; Capabilities tell them apart.
package broker

// Capabilities says what an engine may be trusted with beyond plain produce,
// fetch, groups and offsets.
type Capabilities struct {
	Transactions bool `json:"transactions"`
	ShareGroups  bool `json:"share_groups"`
	Compaction   bool `json:"compaction"`
}

// Kafka is what Apache Kafka 4 and its equals can do.
func Kafka() Capabilities {
	return Capabilities{Transactions: true, ShareGroups: true, Compaction: true}
}
