"""What operators do with Confluent's AdminClient, in the order of a life."""

import json
import sys

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

order = json.load(sys.stdin)[0]
topic, group = order["topic"], order["group"]
kafka = {"bootstrap.servers": order["brokers"]}
admin = AdminClient(kafka)
WAIT = 30  # seconds


def claim(got, want, what):
    if got != want:
        raise SystemExit(f"{what}: {got!r}, want {want!r}")


def done(futures):
    (future,) = futures.values()
    return future.result(WAIT)


def config():
    return done(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))["retention.ms"].value


def partitions():
    return len(admin.list_topics(topic, timeout=WAIT).topics[topic].partitions)


done(admin.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "60000"})]))
claim((partitions(), config()), (2, "60000"), "a new topic")
change = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
done(admin.incremental_alter_configs([ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[change])]))
done(admin.create_partitions([NewPartitions(topic, 3)]))
claim((partitions(), config()), (3, "3600000"), "a changed topic")

producer = Producer(kafka)
producer.produce(topic, b"x", partition=0)
claim(producer.flush(WAIT), 0, "records not sent")

# A group that rebalances bit by bit.
consumer = Consumer({
    **kafka,
    "group.id": group,
    "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "cooperative-sticky",
})
consumer.subscribe([topic])
claim(consumer.poll(WAIT).value(), b"x", "read by a cooperative member")
consumer.commit(asynchronous=False)
claim(group in [g.group_id for g in admin.list_consumer_groups().result(WAIT).valid], True, "the group is listed")
(member,) = done(admin.describe_consumer_groups([group])).members
claim(len(member.assignment.topic_partitions), 3, "partitions of the only member")


def position():
    parts = done(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])).topic_partitions
    return {p.partition: p.offset for p in parts if p.offset >= 0}


claim(position()[0], 1, "committed")
claim(done(admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()})).offset, 1, "end of the log")
consumer.close()

done(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 0)])]))
claim(position()[0], 0, "moved back")
done(admin.delete_consumer_groups([group]))
claim(group in [g.group_id for g in admin.list_consumer_groups().result(WAIT).valid], False, "a group that was deleted")

try:
    records = done(admin.delete_records([TopicPartition(topic, 0, 1)])).low_watermark
except KafkaException as e:
    records = e.args[0].name()
claim(records, 1 if order["kafka"] else "_UNSUPPORTED_FEATURE", "delete records")
done(admin.delete_topics([topic]))
print("every step")
