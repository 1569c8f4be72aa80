// Package server is a schema registry that speaks the core of Confluent's HTTP
// API for Avro and keeps its schemas in a topic, in Confluent's own records,
// so that either can take over from the other.
//
// It promises that an id names one schema for ever, also when several servers
// write one topic without knowing of each other; that what was answered is in
// the topic; and that a server reads what it wrote. A server that lags behind
// another may say for a moment that a fresh schema does not exist.
//
// Limits: schemas are held in memory. Contexts, modes other than READWRITE,
// metadata and rules are not kept; Protobuf and JSON Schema are refused. There
// is no authentication: listen on loopback or behind something that has it.
package server
