"""Confluent's Python client, and fastavro, at the command of a Go test.

client.py reads orders, a list in JSON, from standard input, carries out one
after the other, and prints what came of them, a line of JSON for each record.
"""

import datetime
import decimal
import io
import json
import struct
import sys
import urllib.request
import uuid

import fastavro
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

# Where Confluent's serializers put the schema's GUID, if they are told to.
GUID_HEADER = "__value_schema_id"

# The value of rich.avsc that all languages write and read.
RICH = {
    "text": "Pão de queijo \u2603 \U0001f9c0",
    "small": -(2**31),
    "large": 2**63 - 1,
    "real": 0.5,
    "precise": -1e-300,
    "yes": True,
    "raw": b"\x00\xff\x7f",
    "hash": b"\xde\xad\xbe\xef",
    "price": decimal.Decimal("-1234567.89"),
    "at": datetime.datetime(2026, 2, 28, 23, 59, 59, 999999, datetime.timezone.utc),
    "day": datetime.date(1969, 12, 31),
    "id": uuid.UUID("0190163d-8694-739b-aea5-966c26f8ad90"),
    "colour": "GREEN",
    "tags": ["", "a", "ç"],
    "counts": {"k": -1},
    "maybe": None,
    "either": {"n": 7},
    "inner": {"n": -8},
}


def registry(order):
    return SchemaRegistryClient({"url": order["registry"], **order.get("registry_conf", {})})


def values(order):
    if order.get("rich"):
        return [{"value": RICH}]
    return order["values"]


def produce(order):
    """Serialize with the given schema, which the serializer registers."""
    conf = order.get("serializer", {})
    if order.get("guid_in_header"):
        conf = {**conf, "schema.id.serializer": header_schema_id_serializer}
    serialize = AvroSerializer(registry(order), order["schema"], conf=conf)
    for codec in order.get("codecs", ["none"]):
        send(order, serialize, {"compression.type": codec, **order.get("conf", {})})


def send(order, serialize, conf):
    producer = Producer({"bootstrap.servers": order["brokers"], "enable.idempotence": True, **conf})
    transactional = "transactional.id" in conf
    if transactional:
        producer.init_transactions(order.get("init_seconds", 60))
        producer.begin_transaction()
    failed = []
    for v in values(order):
        headers = [(k, h.encode()) for k, h in v.get("headers", {}).items()]
        at = SerializationContext(order["topic"], MessageField.VALUE, headers)
        producer.produce(
            order["topic"],
            key=v.get("key"),
            value=serialize(v["value"], at),  # which may add a header
            headers=headers,
            on_delivery=lambda err, _: failed.append(str(err)) if err else None,
        )
    if transactional:
        producer.commit_transaction(30)
    if producer.flush(30) != 0 or failed:
        raise SystemExit(f"not delivered: {failed}")


def records(order):
    """The first order["count"] records of a topic, read by a consumer group."""
    consumer = Consumer({
        "bootstrap.servers": order["brokers"],
        "group.id": order["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        **order.get("conf", {}),
    })
    consumer.subscribe([order["topic"]])
    try:
        for _ in range(order["count"]):
            msg = consumer.poll(60)
            if msg is None:
                raise SystemExit("no record within 60 s")
            if msg.error():
                raise SystemExit(str(msg.error()))
            yield msg
            consumer.commit(message=msg, asynchronous=False)
    finally:
        consumer.close()


def show(order, msg, value):
    if order.get("rich"):
        check_rich(value)
    print(json.dumps({
        "key": (msg.key() or b"").decode(),
        "headers": {k: v.hex() if k == GUID_HEADER else v.decode() for k, v in msg.headers() or []},
        "value": value,
    }, default=str))


def check_rich(value):
    for name, want in RICH.items():
        if value.get(name) != want or type(value.get(name)) is not type(want):
            raise SystemExit(f"{name}: read {value.get(name)!r}, want {want!r}")


def consume(order):
    """Deserialize as each reader sees it; without one, as it was written.

    What Confluent's client reads must be what a program reads that takes the
    wire format apart by hand.
    """
    client = registry(order)
    readers = [(AvroDeserializer(client, r), r) for r in order.get("readers", [None])]
    for msg in records(order):
        for deserialize, reader in readers:
            value = deserialize(msg.value(), SerializationContext(msg.topic(), MessageField.VALUE, msg.headers() or []))
            same = by_hand(order, msg, reader)
            if value != same:
                raise SystemExit(f"Confluent's client reads {value!r}, fastavro alone {same!r}")
            show(order, msg, value)


def by_hand(order, msg, reader):
    """The schema is named before the value, or by its GUID in a header."""
    guid = dict(msg.headers() or []).get(GUID_HEADER)
    if guid:
        path, start = f"guids/{uuid.UUID(bytes=guid[1:])}", 0
    else:
        magic, schema_id = struct.unpack(">bI", msg.value()[:5])
        if magic != 0:
            raise SystemExit(f"the value begins with {magic}")
        path, start = f"ids/{schema_id}", 5
    with urllib.request.urlopen(f"{order['registry']}/schemas/{path}", timeout=30) as answer:
        writer = fastavro.parse_schema(json.loads(json.load(answer)["schema"]))
    body = io.BytesIO(msg.value()[start:])
    read = fastavro.schemaless_reader(body, writer, fastavro.parse_schema(json.loads(reader)) if reader else None)
    if body.read():
        raise SystemExit("bytes are left over")
    return read


def committed(order):
    """Where the group stands with each partition."""
    consumer = Consumer({"bootstrap.servers": order["brokers"], "group.id": order["group"]})
    try:
        parts = consumer.list_topics(order["topic"], 30).topics[order["topic"]].partitions
        for p in consumer.committed([TopicPartition(order["topic"], n) for n in parts], 30):
            print(json.dumps({"partition": p.partition, "offset": p.offset}))
    finally:
        consumer.close()


def main():
    commands = {"produce": produce, "consume": consume, "committed": committed}
    for order in json.load(sys.stdin):
        try:
            commands[order["do"]](order)
        except (SchemaRegistryError, SerializationError) as e:
            if not order.get("refusable"):
                raise
            print(json.dumps({"refused": getattr(e, "http_status_code", -1), "says": str(e)}))
        else:
            if order.get("refusable"):
                print(json.dumps({"refused": 0}))


if __name__ == "__main__":
    main()
