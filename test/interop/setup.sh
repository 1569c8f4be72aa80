#!/usr/bin/env bash
# Fetches a part of what the tests of other people's clients need and prints
# where it is:
#
#   setup.sh python     a virtual environment with python/requirements.txt
#   setup.sh java       the directory of the jars of java/pom.xml
#   setup.sh apicurio   the directory of Apicurio's registry, unpacked
#   setup.sh webhooks-python, webhooks-node
#                       a virtual environment with webhooks/requirements.txt, and
#                       a directory with the node_modules of webhooks/package.json
#
# Each comes once, from PyPI, npm or Maven Central, and is kept in
# ${WAYBILL_CACHE:-$HOME/.cache/waybill} under a name that changes with what is
# asked for. Without an argument it fetches all of them.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${WAYBILL_CACHE:-${HOME:-/tmp}/.cache/waybill}
# The last Apicurio that starts on Java 17; 3.3 needs 21.
apicurio=2.6.13.Final

die() { echo "setup.sh: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || die "$1 is missing; install it: apt-get install $2"; }

# fetched NAME COMMAND... prints the folder NAME, which COMMAND fills when it is
# not there yet: in a folder of its own that is moved when complete, so that an
# interrupted run leaves no half of it behind.
fetched() {
	local to=$cache/$1 tmp
	shift
	if [ ! -d "$to" ]; then
		mkdir -p "$cache"
		tmp=$(mktemp -d "$to.XXXXXX")
		if ! "$@" "$tmp" >"$tmp/fetch.log" 2>&1; then
			tail -5 "$tmp/fetch.log" >&2
			rm -rf "$tmp"
			die "$(basename "$to") could not be fetched"
		fi
		mv -T "$tmp" "$to" 2>/dev/null || rm -rf "$tmp" # another run was faster
	fi
	echo "$to"
}

environment() {
	python3 -m venv "$2" && "$2/bin/python" -m pip install --disable-pip-version-check -q -r "$1"
}
modules() {
	cp "$here/webhooks/package.json" "$here/webhooks/package-lock.json" "$1" && npm ci --prefix "$1" --no-audit --no-fund --ignore-scripts
}
jars() {
	mvn -q -B -f "$here/java/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$1"
}
# Maven notes in its project what it has unpacked, and would not do it again: so
# the project is one of the folder's own.
unpacked() {
	cp "$here/java/pom.xml" "$1" &&
		mvn -q -B -f "$1/pom.xml" dependency:unpack -Dartifact="io.apicurio:apicurio-registry-app:$apicurio:tar.gz:all" -DoutputDirectory="$1"
}
sum() { sha256sum | cut -c1-12; }

part() {
	case $1 in
	python)
		need python3 "python3 python3-venv"
		fetched "interop-python-$( (python3 -c 'import sys; print(sys.version, sys.base_prefix)' && cat "$here/python/requirements.txt") | sum)" environment "$here/python/requirements.txt"
		;;
	java)
		need mvn maven
		fetched "interop-java-$(sum <"$here/java/pom.xml")" jars
		;;
	apicurio)
		need mvn maven
		fetched "apicurio-$apicurio" unpacked
		;;
	webhooks-python)
		need python3 "python3 python3-venv"
		fetched "interop-webhooks-python-$( (python3 -c 'import sys; print(sys.version, sys.base_prefix)' && cat "$here/webhooks/requirements.txt") | sum)" environment "$here/webhooks/requirements.txt"
		;;
	webhooks-node)
		need npm "nodejs npm"
		fetched "interop-webhooks-node-$(sum <"$here/webhooks/package-lock.json")" modules
		;;
	*) die "no part '$1'; want python, java, apicurio, webhooks-python or webhooks-node" ;;
	esac
}

if [ $# -gt 0 ]; then
	part "$1"
else
	part python
	part java
	part apicurio
	part webhooks-python
	part webhooks-node
fi
