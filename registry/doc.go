// Package registry ties the bytes on the wire to the contracts they were
// written with, through any schema registry that speaks Confluent's API.
//
// A program registers its contracts once, when it starts, and refuses to start
// when one may not follow its predecessors. After that, events are decoded
// with the writer's schema, found by the id before the body, resolved to the
// reader's own.
//
// It promises to tell the fault of an event from the fault of the
// infrastructure: every error that is worth waiting out is [ErrUnavailable].
//
// Limits: Avro only. Schemas are cached for the life of the program, which is
// sound because an id never changes its schema. An unknown id is asked for
// again each time it is met. The registry itself is in package server.
package registry
