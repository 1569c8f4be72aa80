import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's and Avro's own Java libraries at the command of a Go test, with the
 * wire format and the registry by hand: Confluent's serializers are not on
 * Maven Central. Reads orders, a list in JSON, from standard input.
 *
 * produce: registers "schema" under "subject", and sends each of "values",
 * Avro's JSON of a record.
 *
 * consume: the first "count" records of "topic" by the group "group", as
 * "reader" sees them or, without one, as they were written; prints key,
 * headers, Avro's JSON of the value and its bytes as Java writes them again.
 */
public class Interop {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HttpClient HTTP = HttpClient.newHttpClient();

    public static void main(String[] args) throws Exception {
        for (JsonNode order : JSON.readTree(System.in)) {
            switch (order.get("do").asText()) {
                case "produce" -> produce(order);
                case "consume" -> consume(order);
                default -> throw new IllegalArgumentException(order.toString());
            }
        }
    }

    static JsonNode ask(HttpRequest.Builder request) throws Exception {
        HttpResponse<String> answer = HTTP.send(request.timeout(Duration.ofSeconds(30)).build(), HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) {
            throw new IllegalStateException("registry: " + answer.statusCode() + " " + answer.body());
        }
        return JSON.readTree(answer.body());
    }

    static void produce(JsonNode order) throws Exception {
        Schema schema = new Schema.Parser().parse(order.get("schema").asText());
        String subject = URLEncoder.encode(order.get("subject").asText(), StandardCharsets.UTF_8);
        String body = JSON.writeValueAsString(Map.of("schema", schema.toString()));
        int id = ask(HttpRequest.newBuilder(URI.create(order.get("registry").asText() + "/subjects/" + subject + "/versions"))
            .header("Content-Type", "application/vnd.schemaregistry.v1+json")
            .POST(HttpRequest.BodyPublishers.ofString(body))).get("id").asInt();
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            Map<String, Object> conf = new HashMap<>(Map.of(
                "bootstrap.servers", order.get("brokers").asText(), "compression.type", codec, "enable.idempotence", true,
                "acks", "all", "max.block.ms", 30000));
            try (var producer = new KafkaProducer<>(conf, new StringSerializer(), new ByteArraySerializer())) {
                for (JsonNode value : order.get("values")) {
                    var datum = new GenericDatumReader<GenericRecord>(schema)
                        .read(null, DecoderFactory.get().jsonDecoder(schema, value.toString()));
                    var record = new ProducerRecord<>(order.get("topic").asText(), "k", framed(id, encode(schema, datum)));
                    record.headers().add("codec", codec.getBytes(StandardCharsets.UTF_8));
                    producer.send(record).get();
                }
            }
        }
    }

    static byte[] framed(int id, byte[] body) {
        return ByteBuffer.allocate(5 + body.length).put((byte) 0).putInt(id).put(body).array();
    }

    static byte[] encode(Schema schema, Object datum) throws Exception {
        var out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<>(schema).write(datum, encoder);
        encoder.flush();
        return out.toByteArray();
    }

    static void consume(JsonNode order) throws Exception {
        Map<String, Object> conf = new HashMap<>(Map.of(
            "bootstrap.servers", order.get("brokers").asText(), "group.id", order.get("group").asText(),
            "auto.offset.reset", "earliest", "enable.auto.commit", false, "isolation.level", "read_committed"));
        Map<Integer, Schema> writers = new HashMap<>();
        Instant late = Instant.now().plusSeconds(60);
        int count = order.get("count").asInt();
        try (var consumer = new KafkaConsumer<>(conf, new StringDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(order.get("topic").asText()));
            while (count > 0) {
                if (Instant.now().isAfter(late)) {
                    throw new IllegalStateException(count + " records were not there within 60 s");
                }
                for (ConsumerRecord<String, byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    if (count-- > 0) {
                        show(order, record, writers);
                    }
                }
                consumer.commitSync();
            }
        }
    }

    static void show(JsonNode order, ConsumerRecord<String, byte[]> record, Map<Integer, Schema> writers) throws Exception {
        ByteBuffer value = ByteBuffer.wrap(record.value());
        if (value.get() != 0) {
            throw new IllegalStateException("the value does not begin with 0");
        }
        int id = value.getInt();
        Schema writer = writers.get(id);
        if (writer == null) {
            JsonNode answer = ask(HttpRequest.newBuilder(URI.create(order.get("registry").asText() + "/schemas/ids/" + id)));
            writers.put(id, writer = new Schema.Parser().parse(answer.get("schema").asText()));
        }
        Schema reader = order.hasNonNull("reader") ? new Schema.Parser().parse(order.get("reader").asText()) : writer;
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(record.value(), 5, record.value().length - 5, null);
        Object datum = new GenericDatumReader<>(writer, reader, GenericData.get()).read(null, decoder);
        if (!decoder.isEnd()) {
            throw new IllegalStateException("bytes are left over");
        }
        var text = new ByteArrayOutputStream();
        JsonEncoder encoder = EncoderFactory.get().jsonEncoder(reader, text);
        new GenericDatumWriter<>(reader).write(datum, encoder);
        encoder.flush();

        ObjectNode shown = JSON.createObjectNode();
        shown.put("key", record.key());
        ObjectNode headers = shown.putObject("headers");
        for (Header h : record.headers()) {
            headers.put(h.key(), new String(h.value(), StandardCharsets.UTF_8));
        }
        shown.set("value", JSON.readTree(text.toByteArray()));
        shown.put("body", encode(reader, datum));
        System.out.println(shown);
    }
}
