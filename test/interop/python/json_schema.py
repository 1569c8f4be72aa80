"""Confluent's JSON Schema serializers, at the command of a Go test.

json_schema.py reads orders as client.py does. An order to produce has the
schema and what it refers to: lists of name, subject, version.
"""

import json
import sys

from client import records, registry, send, show
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError


def schema(order):
    refs = [SchemaReference(*r) for r in order.get("references", [])]
    return Schema(order["schema"], "JSON", refs)


def produce(order):
    """Validate and serialize; the serializer registers the schema."""
    send(order, JSONSerializer(schema(order), registry(order), conf=order.get("serializer", {})), {})


def consume(order):
    """Read by the writer's schema, which the deserializer asks for."""
    deserialize = JSONDeserializer(None, schema_registry_client=registry(order))
    for msg in records(order):
        show(order, msg, deserialize(msg.value(), SerializationContext(msg.topic(), MessageField.VALUE)))


def main():
    for order in json.load(sys.stdin):
        try:
            {"produce": produce, "consume": consume}[order["do"]](order)
        except (SchemaRegistryError, SerializationError) as e:
            if not order.get("refusable"):
                raise
            print(json.dumps({"refused": getattr(e, "http_status_code", -1), "says": str(e)}))


if __name__ == "__main__":
    main()
