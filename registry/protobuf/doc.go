// Package protobuf reads Protobuf schemas as a schema registry keeps them, and
// says whether one may follow the earlier versions of its subject.
//
// A schema is the text of one .proto file, or its FileDescriptorProto in
// base64, which some clients send. Its imports are the schemas it refers to, by
// the name in the import, and those every registry has: Google's well-known and
// common types and Confluent's own. The rules of compatibility are those of
// Confluent's registry, which are not those of buf or protoc.
//
// It reads no file and asks no network. What it reads is bounded: see limits.go.
package protobuf
