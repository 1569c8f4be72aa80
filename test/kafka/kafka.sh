#!/usr/bin/env bash
# Runs a command beside a fresh Apache Kafka and stops it again:
#
#   test/kafka/kafka.sh go test ./broker/...
#
# The command finds the broker in WAYBILL_TEST_KAFKA (host:port). Kafka's jars
# come from Maven Central once and are kept in
# ${WAYBILL_CACHE:-$HOME/.cache/waybill}/kafka-VERSION; KAFKA_VERSION picks
# another version than pom.xml names. The data goes with the run. If the
# command fails, the end of Kafka's log is shown.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=${KAFKA_VERSION:-$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$here/pom.xml")}
cache=${WAYBILL_CACHE:-${HOME:-/tmp}/.cache/waybill}/kafka-$version

die() { echo "kafka.sh: $*" >&2; exit 1; }

[ $# -gt 0 ] || { echo "usage: kafka.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
command -v java >/dev/null || die "java is missing; install it: apt-get install openjdk-17-jre-headless"
major=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)
[ "${major:-0}" -ge 17 ] || die "Kafka 4 needs Java 17, this is ${major:-unknown}; install it: apt-get install openjdk-17-jre-headless"

# Fetched into a directory of its own and moved when complete, so that an
# interrupted run leaves no half of it behind.
fetch() {
	command -v mvn >/dev/null || die "mvn is missing; install it: apt-get install maven"
	local tmp
	mkdir -p "$(dirname "$cache")"
	tmp=$(mktemp -d "$cache.XXXXXX")
	echo "kafka.sh: fetching Kafka $version into $cache" >&2
	if ! mvn -q -B -f "$here/pom.xml" -Dkafka.version="$version" dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$tmp/libs" >"$tmp/mvn.log" 2>&1; then
		cat "$tmp/mvn.log" >&2
		rm -rf "$tmp"
		die "Kafka $version could not be fetched"
	fi
	mv "$tmp" "$cache" 2>/dev/null || rm -rf "$tmp" # another run was faster
}
ls "$cache"/libs/kafka_2.13-*.jar >/dev/null 2>&1 || fetch

work=$(mktemp -d "${TMPDIR:-/tmp}/waybill-kafka.XXXXXX")
kafka=
command=

stop() {
	local status=$?
	trap - EXIT INT TERM HUP
	if [ -n "$command" ]; then
		kill "$command" 2>/dev/null || true
		wait "$command" 2>/dev/null || true
	fi
	if [ -n "$kafka" ] && kill -0 "$kafka" 2>/dev/null; then
		kill "$kafka" 2>/dev/null || true
		for _ in $(seq 100); do
			kill -0 "$kafka" 2>/dev/null || break
			sleep 0.1
		done
		kill -9 "$kafka" 2>/dev/null || true
		wait "$kafka" 2>/dev/null || true
	fi
	rm -rf "$work"
	exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Two free ports. The system hands out others meanwhile, but not these: they
# lie outside its range for outgoing connections on Linux.
free_port() {
	local port
	for _ in $(seq 50); do
		port=$((20000 + RANDOM % 10000))
		[ "$port" = "${1:-}" ] && continue
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "$port"
			return
		fi
	done
	die "no free port"
}
port=$(free_port)
controller=$(free_port "$port")

cat >"$work/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$work/data
num.partitions=1
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=33554432
PROPERTIES

run_java() {
	exec java -Xms128m -Xmx512m -XX:+UseSerialGC -Dlog4j2.configurationFile="$here/log4j2.properties" -cp "$cache/libs/*" "$@"
}

id=$(head -c 16 /dev/urandom | base64 | tr '+/' 'AA' | cut -c1-22)
(run_java kafka.tools.StorageTool format --cluster-id "$id" --config "$work/server.properties") >"$work/format.log" 2>&1 ||
	{ cat "$work/format.log" >&2; die "the storage could not be formatted"; }

(run_java kafka.Kafka "$work/server.properties") >"$work/kafka.log" 2>&1 &
kafka=$!

ready() {
	for _ in $(seq 300); do
		kill -0 "$kafka" 2>/dev/null || return 1
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return 0
		sleep 0.2
	done
	return 1
}
ready || { tail -50 "$work/kafka.log" >&2; die "Kafka $version did not start"; }

# In the background, for a trap runs at once only while the shell waits.
status=0
WAYBILL_TEST_KAFKA=127.0.0.1:$port "$@" <&0 &
command=$!
wait "$command" || status=$?
command=
[ "$status" = 0 ] || { echo "kafka.sh: the command failed ($status); Kafka's log ends:" >&2; tail -20 "$work/kafka.log" >&2; }
exit "$status"
