// Package embedded is a broker inside the program: Kafka's protocol on a
// loopback port, a log in a directory, no second process to run.
//
// It promises that a record it acknowledged is on disk and survives the
// process being killed at any instant, and that no bytes a client sends can
// stop it: a guard in front of it reads every request first.
//
// It is for one machine: a single node, nothing is replicated, and the disk is
// the only copy. It offers no transactions, no share groups and no
// compaction, because those do not survive a kill; requests for them are
// refused. All requests pass one loop, and each acknowledged batch and each
// committed offset is an fsync in it: commit about once a second, not per
// record. Some 100 to 150 bytes of memory stay with every batch that is
// retained, so bound topics by bytes or time. Anyone who can connect can do
// anything: it knows neither TLS nor passwords, so keep it on loopback or a
// private network.
package embedded
