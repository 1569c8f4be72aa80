#!/usr/bin/env bash
# Fetches the server programs of other major versions of Postgres for tests:
#
#   pg/pgtest/fetch.sh 17 18
#
# They come from Maven Central once and are kept in a cache: in
# $WAYBILL_CACHE/postgres if that is set, else in /var/cache/waybill/postgres
# for root, whose own cache is closed to the user that Postgres runs as, and in
# ~/.cache/waybill/postgres for anybody else. The archives hold initdb, pg_ctl
# and postgres alone. pom.xml names the versions.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() { echo "fetch.sh: $*" >&2; exit 1; }

[ $# -gt 0 ] || { echo "usage: fetch.sh MAJOR..." >&2; exit 2; }

if [ -n "${WAYBILL_CACHE:-}" ]; then
	root=$WAYBILL_CACHE/postgres
elif [ "$(id -u)" -eq 0 ]; then
	root=/var/cache/waybill/postgres
else
	root=${HOME:-/tmp}/.cache/waybill/postgres
fi

case $(uname -s) in
Linux) system=linux ;;
Darwin) system=darwin ;;
*) die "there are no archives for $(uname -s)" ;;
esac
case $(uname -m) in
x86_64 | amd64) machine=amd64 ;;
aarch64 | arm64) machine=arm64v8 ;;
*) die "there are no archives for $(uname -m)" ;;
esac

# Fetched into a directory of its own and moved when complete, so that an
# interrupted run leaves no half of it behind.
fetch() {
	local version=$1 tmp
	command -v mvn >/dev/null || die "mvn is missing; install it: apt-get install maven"
	command -v xz >/dev/null || die "xz is missing; install it: apt-get install xz-utils"
	mkdir -p "$root"
	tmp=$(mktemp -d "$root/fetch-XXXXXX")
	chmod 755 "$tmp"
	cp "$here/pom.xml" "$tmp" # Maven leaves a folder beside it
	echo "fetch.sh: fetching Postgres $version into $root/$version" >&2
	if ! mvn -q -B -f "$tmp/pom.xml" dependency:unpack -DoutputDirectory="$tmp/jar" \
		-Dartifact="io.zonky.test.postgres:embedded-postgres-binaries-$system-$machine:$version" >"$tmp/mvn.log" 2>&1; then
		cat "$tmp/mvn.log" >&2
		rm -rf "$tmp"
		die "Postgres $version could not be fetched"
	fi
	mkdir "$tmp/programs"
	tar -xJf "$tmp"/jar/*.txz -C "$tmp/programs"
	"$tmp/programs/bin/postgres" --version >&2
	[ -e "$root/$version" ] || mv "$tmp/programs" "$root/$version" # another run may have been faster
	rm -rf "$tmp"
}

for major in "$@"; do
	version=$(sed -n "s:.*<postgres.$major>\(.*\)</postgres.$major>.*:\1:p" "$here/pom.xml")
	[ -n "$version" ] || die "pom.xml names no version of Postgres $major"
	[ -x "$root/$version/bin/postgres" ] || fetch "$version"
done
