// Package embedded is a broker inside the program: Kafka's protocol on a
// loopback port, a log in a directory, no second process to run.
//
// It promises that a record it acknowledged, and an offset it committed,
// survive the process being killed at any instant; that offsets of a topic
// never start again; and that no bytes a client sends can stop it: a guard in
// front of it reads every request, and every record, first.
//
// It is for one machine: a single node, nothing is replicated, and the disk is
// the only copy. If a write fails the broker stops serving (see Failed); an fsync
// that fails is not noticed. Its limits:
//
//   - No transactions, share groups, compaction, server-side consumer groups
//     or deleting of records: these do not survive a kill. Requests for them
//     are refused.
//   - After a kill a batch that was on its way may be written twice, even by
//     an idempotent producer: what it knew of producers is gone.
//   - All requests pass one loop, and each acknowledged batch and each
//     committed offset is an fsync in it: commit about once a second, not per
//     record.
//   - Some 100 to 150 bytes of memory stay with every batch that is retained,
//     and some with every producer there ever was: bound topics by bytes or
//     time. Retention frees disk space in whole segments of 32 MiB and always
//     keeps the last batch.
//   - While less than 64 MiB of disk are free, producers are told to wait
//     (on Linux; elsewhere it does not look).
//   - Anyone who can connect can do anything: it knows neither TLS nor
//     passwords. Keep it on loopback or a private network.
package embedded
