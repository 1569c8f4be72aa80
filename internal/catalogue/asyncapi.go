package catalogue

import (
	"encoding/json"
	"fmt"
	"regexp"
)

type object = map[string]any

// AsyncAPI is the catalogue as an AsyncAPI 3.0 document. Its operations are
// what the described system does: it sends.
func (c *Catalogue) AsyncAPI(version, kafka string) ([]byte, error) {
	channels, operations, messages := object{}, object{}, object{}
	for _, t := range c.Topics {
		channel, carried, all := identifier(t.Name, channels), object{}, []object{}
		for _, e := range t.Events {
			id := identifier(e.Anchor, messages)
			carried[id] = reference("components", "messages", id)
			all = append(all, reference("channels", channel, "messages", id))
			messages[id] = message(e)
		}
		channels[channel] = object{"address": t.Name, "messages": carried}
		operations["send_"+channel] = object{"action": "send", "channel": reference("channels", channel), "messages": all}
	}
	doc := object{
		"asyncapi": "3.0.0",
		"info": object{
			"title": c.Title, "version": version,
			"description": "Events as CloudEvents 1.0 in Kafka's binary mode: attributes in headers, the value in Avro behind Confluent's five-byte prefix.",
		},
		"defaultContentType": "application/avro",
		"channels":           channels,
		"operations":         operations,
		"components":         object{"messages": messages, "schemas": object{"headers": headers()}},
	}
	if kafka != "" {
		doc["servers"] = object{"kafka": object{"host": kafka, "protocol": "kafka"}}
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write AsyncAPI document: %w", err)
	}
	return append(text, '\n'), nil
}

func message(e Event) object {
	m := object{
		"name": e.Type, "title": e.Name, "summary": e.Doc, "contentType": "application/avro",
		"headers": reference("components", "schemas", "headers"),
		"payload": object{"schemaFormat": "application/vnd.apache.avro+json;version=1.9.0", "schema": e.Schema},
	}
	key := object{"type": "string"}
	if e.Key != "" {
		key["description"] = "The field " + e.Key + "."
	}
	m["bindings"] = object{"kafka": object{"key": key, "schemaIdLocation": "payload", "schemaIdPayloadEncoding": "confluent", "bindingVersion": "0.5.0"}}
	return m
}

// headers are the attributes that every event bears.
func headers() object {
	text := func(doc string) object { return object{"type": "string", "description": doc} }
	return object{
		"type":     "object",
		"required": []string{"ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time", "ce_tenant"},
		"properties": object{
			"ce_specversion":   object{"type": "string", "const": "1.0"},
			"ce_id":            text("Id of the event, a UUID; the same when it is delivered again."),
			"ce_source":        text("Who says it."),
			"ce_type":          text("Full name of the record in the value."),
			"ce_subject":       text("Id of the aggregate, which is the record's key."),
			"ce_time":          text("When it happened, RFC 3339."),
			"ce_tenant":        text("Whose it is."),
			"ce_sequence":      text("The aggregate's version after it."),
			"ce_correlationid": text("What all events of one course of things share."),
			"ce_causationid":   text("Id of the event that brought it about."),
			"traceparent":      text("W3C trace context."),
			"content-type":     object{"type": "string", "const": "application/avro"},
		},
	}
}

func reference(path ...string) object {
	ref := "#"
	for _, p := range path {
		ref += "/" + p
	}
	return object{"$ref": ref}
}

// AsyncAPI's names take letters, digits, dots, _ and -; these need no escape in
// a reference.
var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// identifier is a name that is not taken yet.
func identifier(name string, taken object) string {
	name = unfit.ReplaceAllString(name, "_")
	id := name
	for n := 2; taken[id] != nil; n++ {
		id = fmt.Sprint(name, "_", n)
	}
	return id
}
