#!/usr/bin/env bash
# Prints the directory of Apache Avro's jars. They come from Maven Central once
# and are kept in ${WAYBILL_CACHE:-$HOME/.cache/waybill}/avro-VERSION.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(sed -n 's:.*<avro.version>\(.*\)</avro.version>.*:\1:p' "$here/pom.xml")
cache=${WAYBILL_CACHE:-${HOME:-/tmp}/.cache/waybill}/avro-$version

die() { echo "avro.sh: $*" >&2; exit 1; }

# Fetched into a directory of its own and moved when complete, so that an
# interrupted run leaves no half of it behind.
fetch() {
	command -v mvn >/dev/null || die "mvn is missing; install it: apt-get install maven"
	local tmp
	mkdir -p "$(dirname "$cache")"
	tmp=$(mktemp -d "$cache.XXXXXX")
	if ! mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$tmp/libs" >"$tmp/mvn.log" 2>&1; then
		tail -5 "$tmp/mvn.log" >&2
		rm -rf "$tmp"
		die "Avro $version could not be fetched"
	fi
	mv "$tmp" "$cache" 2>/dev/null || rm -rf "$tmp" # another run was faster
}
ls "$cache"/libs/avro-*.jar >/dev/null 2>&1 || fetch
echo "$cache/libs"
