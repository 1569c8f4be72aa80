"""Confluent's serializers for Protobuf, at the command of a Go test.

proto.py reads an order in JSON from standard input. It writes values of nested
types, whose schema imports another and comes with a map, in every way that the
serializer has to find its schema, and reads them back.
"""

import json
import sys

from client import records, send
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from google.type import date_pb2

FIELD = descriptor_pb2.FieldDescriptorProto
TYPES = {"string": FIELD.TYPE_STRING, "int32": FIELD.TYPE_INT32, "int64": FIELD.TYPE_INT64}


def field(message, name, number, kind, repeated=False):
    f = message.field.add(name=name, number=number, label=FIELD.LABEL_REPEATED if repeated else FIELD.LABEL_OPTIONAL)
    if kind in TYPES:
        f.type = TYPES[kind]
    else:
        f.type, f.type_name = FIELD.TYPE_MESSAGE, kind


def files(count):
    """What protoc makes of two files; count is the type of a line's count."""
    person = descriptor_pb2.FileDescriptorProto(name="interop/person.proto", package="interop", syntax="proto3")
    field(person.message_type.add(name="Person"), "name", 1, "string")

    order = descriptor_pb2.FileDescriptorProto(name="interop/order.proto", package="interop", syntax="proto3")
    order.dependency.extend(["interop/person.proto", "google/protobuf/timestamp.proto", "google/type/date.proto"])
    order.message_type.add(name="Unused")
    m = order.message_type.add(name="Order")
    # protoc numbers the entry of a map where its field stands: before Line.
    entry = m.nested_type.add(name="PeopleEntry")
    entry.options.map_entry = True
    field(entry, "key", 1, "string")
    field(entry, "value", 2, ".interop.Person")
    field(m, "people", 1, ".interop.Order.PeopleEntry", repeated=True)
    line = m.nested_type.add(name="Line")
    field(line, "what", 1, "string")
    field(line, "count", 2, count)
    field(line.nested_type.add(name="Part"), "of", 1, ".interop.Order.Line")
    field(m, "lines", 2, ".interop.Order.Line", repeated=True)
    field(m, "at", 3, ".google.protobuf.Timestamp")
    field(m, "day", 4, ".google.type.Date")
    return person, order


def classes(count="int32"):
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, date_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for f in files(count):
        pool.Add(f)
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName("interop." + n))
            for n in ("Order", "Order.Line", "Order.Line.Part")}


def samples(of):
    order = of["Order"](lines=[{"what": "a", "count": 3}])
    order.people["ann"].name = "Ann"
    order.at.seconds, order.day.year = 1, 2026
    return [order, of["Order.Line"](what="b", count=-1), of["Order.Line.Part"](of={"what": "c"})]


def write(o, client, values, conf):
    for value in values:
        serialize = ProtobufSerializer(type(value), client, {**conf})
        send({**o, "values": [{"value": value}]}, serialize, {})


def main():
    o = json.load(sys.stdin)[0]
    of = classes()
    for conf in ({"auto.register.schemas": True}, {"auto.register.schemas": False}):
        write(o, SchemaRegistryClient({"url": o["registry"]}), samples(of), conf)
    # It looks for nested types among those at the top when it takes the latest.
    latest = {"auto.register.schemas": False, "use.latest.version": True}
    write(o, SchemaRegistryClient({"url": o["registry"]}), samples(of)[:1], latest)

    # A line's count of more bits is read as what it was; a text is refused.
    client = SchemaRegistryClient({"url": o["registry"]})
    wider = classes("int64")
    write(o, client, samples(wider), {})
    try:
        write(o, client, [classes("string")["Order"]()], {})
        raise SystemExit("an incompatible schema was taken")
    except SchemaRegistryError as e:
        if e.http_status_code != 409 or "interop.Order.Line.count" not in str(e):
            raise

    want = samples(of) * 2 + samples(of)[:1] + samples(wider)
    for n, msg in enumerate(records({**o, "count": len(want)})):
        at = SerializationContext(o["topic"], MessageField.VALUE)
        for reader in (of, wider):
            cls = reader[want[n].DESCRIPTOR.full_name.removeprefix("interop.")]
            got = ProtobufDeserializer(cls, {}, client)(msg.value(), at)
            if got.SerializeToString(deterministic=True) != want[n].SerializeToString(deterministic=True):
                raise SystemExit(f"record {n}: read {got}, want {want[n]}")
    print("every message")


if __name__ == "__main__":
    main()
