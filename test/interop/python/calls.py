"""Every call of Confluent's SchemaRegistryClient, and what it must say.

The order of claims is a life: register, look up, forbid, delete, settings.
"""

import hashlib
import json
import sys
import uuid

from confluent_kafka.schema_registry import ConfigCompatibilityLevel, Schema, SchemaReference, SchemaRegistryClient, ServerConfig
from confluent_kafka.schema_registry.error import SchemaRegistryError

order = json.load(sys.stdin)[0]


def connect():
    """A client whose caches are empty: an answer from a cache is no answer."""
    return SchemaRegistryClient({"url": order["registry"], "max.retries": 0, "timeout": 30})


def claim(got, want, what):
    if got != want:
        raise SystemExit(f"{what}: {got!r}, want {want!r}")


def refused(status, code, call, *args, **kwargs):
    try:
        got = call(*args, **kwargs)
    except SchemaRegistryError as e:
        claim((e.http_status_code, e.error_code), (status, code), f"{call.__name__}{args} says {e}")
        return
    raise SystemExit(f"{call.__name__}{args}: {got!r}, want a refusal {code}")


def record(name, *fields):
    return Schema(json.dumps({"type": "record", "name": name, "fields": list(fields)}), "AVRO")


text = {"name": "text", "type": "string"}
v1, v2 = record("Note", text), record("Note", text, {"name": "stars", "type": "int", "default": 3})
bad = record("Note", text, {"name": "author", "type": "string"})
book = Schema(
    json.dumps({"type": "record", "name": "Book", "fields": [{"name": "note", "type": "Note"}]}),
    "AVRO",
    [SchemaReference("Note", "a/b note", 1)],
)
note = "a/b note"  # a subject that must be escaped in a path

c = connect()
claim(c.get_schema_types(), ["AVRO", "JSON", "PROTOBUF"], "types")
claim(c.get_contexts(), ["."], "contexts")
claim(c.get_subjects(), [], "subjects at first")

claim(c.register_schema(note, v1), 1, "first id")
claim(c.register_schema(note, v2, normalize_schemas=True), 2, "second id")
full = connect().register_schema_full_response(note, v2)
claim((full.schema_id, full.subject, full.version), (2, note, 2), "known already")
claim(connect().get_schema_by_guid(full.guid).schema_str, full.schema.schema_str, "by the GUID of an answer")
claim(c.register_schema("book", book), 3, "with a reference")
refused(409, 409, c.register_schema, note, bad)
refused(422, 42201, c.register_schema, note, Schema("{", "AVRO"))
refused(422, 42201, c.register_schema, "p", Schema("message M {", "PROTOBUF"))

c = connect()
claim(json.loads(c.get_schema(1).schema_str), json.loads(v1.schema_str), "by id")
claim(connect().get_schema(1, subject_name=note).schema_type, "AVRO", "by id and subject")
claim(c.get_schema(3).references, book.references, "references by id")
refused(404, 40403, c.get_schema, 99)
stored = c.get_schema(1).schema_str
guid = uuid.UUID(bytes=hashlib.md5(stored.encode()).digest())
claim(connect().get_schema_by_guid(str(guid)).schema_str, stored, "by guid")
claim(c.get_subjects_by_schema_id(1), [note], "subjects of an id")
claim([(v.subject, v.version) for v in c.get_schema_versions(2)], [(note, 2)], "versions of an id")
found = c.lookup_schema(note, v2, normalize_schemas=True)
claim((found.schema_id, found.version, found.subject, found.guid), (2, 2, note, full.guid), "lookup")
refused(404, 40403, c.lookup_schema, note, bad)
refused(404, 40401, c.lookup_schema, "nobody", v1)
claim(c.get_subjects(subject_prefix="a/"), [note], "subjects by prefix")
claim(c.get_subjects(offset=1, limit=1), ["book"], "a page of subjects")
latest = c.get_latest_version(note)
claim((latest.schema_id, latest.version, latest.guid), (2, 2, full.guid), "latest")
claim(c.get_version(note, 1).schema_id, 1, "a version")
claim(c.get_version(note).version, 2, "the latest version")
refused(404, 40402, c.get_version, note, 7)
refused(404, 40401, c.get_version, "nobody", 1)
claim(c.get_versions(note), [1, 2], "versions")
claim(c.get_referenced_by(note, 1), [3], "referenced by")

claim(c.test_compatibility(note, bad), False, "incompatible with the latest")
claim(c.test_compatibility(note, v2, version=1), True, "compatible with the first")
claim(c.test_compatibility_all_versions(note, bad, verbose=True), False, "incompatible with all")
claim(c.test_compatibility_all_versions(note, v1), True, "compatible with all")

claim(c.get_compatibility(), "BACKWARD", "global level")
refused(404, 40408, c.get_compatibility, note)
claim(c.set_compatibility(note, "full_transitive"), {"compatibility": "FULL_TRANSITIVE"}, "set a level")
claim(c.get_compatibility(note), "FULL_TRANSITIVE", "the level that was set")
refused(422, 42203, c.set_compatibility, note, "sideways")
c.set_config(note, ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
claim(c.get_config(note).compatibility_level, ConfigCompatibilityLevel.NONE, "config")
c.delete_config(note)
refused(404, 40408, c.get_config, note)
c.set_compatibility(level="FORWARD")
claim(c.get_config().compatibility_level, ConfigCompatibilityLevel.FORWARD, "global config")
c.delete_config()
claim(c.get_compatibility(), "BACKWARD", "global level again")

claim(c.get_global_mode(), "READWRITE", "global mode")
refused(404, 40409, c.get_mode, note)
claim(c.update_mode(note, "READONLY"), "READONLY", "set a mode")
claim(c.get_mode(note), "READONLY", "mode")
refused(422, 42205, connect().register_schema, note, record("Note", text, {"name": "x", "type": "int", "default": 0}))
claim(c.delete_mode(note), "READONLY", "the mode that was")
claim(c.update_global_mode("IMPORT", force=True), "IMPORT", "force a global mode")
claim(c.update_global_mode("READWRITE"), "READWRITE", "set a global mode")
refused(422, 42204, c.update_global_mode, "UPSIDE_DOWN")

# Not there (docs/interop.md): a 404 that callers can tell from a subject's.
refused(404, 404, c.get_latest_with_metadata, note, {"k": "v"})
refused(404, 404, c.get_associations_by_resource_name, "topic", "-")

refused(422, 42206, c.delete_version, note, 1)
refused(404, 40407, c.delete_version, note, 2, permanent=True)
claim(c.delete_version(note, 2), 2, "delete a version softly")
claim(c.get_versions(note), [1], "versions without it")
claim(c.get_versions(note, deleted=True), [1, 2], "versions with it")
refused(404, 40402, connect().get_version, note, 2)
claim(connect().get_version(note, 2, deleted=True).schema_id, 2, "it is found when asked for")
claim(connect().lookup_schema(note, v2, deleted=True).version, 2, "so does a lookup")
claim(connect().get_schema(2).schema_str is not None, True, "its id lives")
claim(c.delete_version(note, 2, permanent=True), 2, "delete it for good")
claim(c.get_versions(note, deleted=True), [1], "versions after that")
claim(c.delete_subject("book"), [1], "delete a subject softly")
claim(c.get_subjects(), [note], "subjects without it")
claim(sorted(c.get_subjects(deleted=True)), sorted([note, "book"]), "subjects with it")
claim(c.get_subjects(deleted_only=True), [note], "a parameter that is deletedOnly is not sent as such")
refused(404, 40404, c.delete_subject, "book")
claim(c.delete_subject("book", permanent=True), [1], "delete it for good")
refused(404, 40401, c.delete_subject, "nobody")
claim(c.delete_subject(note), [1], "delete the other softly")
claim(c.delete_subject(note, permanent=True), [1], "and for good")
claim(c.get_subjects(deleted=True), [], "subjects at last")
claim(connect().register_schema(note, bad), 4, "ids are not given again")
print("every call")
