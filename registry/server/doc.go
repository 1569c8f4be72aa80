// Package server is a schema registry that speaks Confluent's HTTP API for Avro
// and Protobuf and keeps its schemas in a topic, in Confluent's own records, so that either
// can take over from the other. docs/registry.md has its endpoints and codes.
//
// It promises that an id names one schema for ever, also when several servers
// write one topic without knowing of each other, and however long one of them
// sleeps between looking and writing; that what was answered is in the topic;
// and that a server reads what it wrote. A server that lags behind another may
// say for a moment that a fresh schema does not exist.
//
// Limits: schemas are held in memory. There is one context; metadata and rules
// are kept and handed out, not carried out; JSON Schema is served from a topic
// that has it and refused otherwise. Without [Auth] it asks
// nobody who they are: listen on loopback or behind something that does.
package server
