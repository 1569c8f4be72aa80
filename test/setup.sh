#!/usr/bin/env bash
# What the tests need beside Go: Postgres server binaries, PgBouncer, kcat,
# Chromium; with the argument "kafka" or "postgres" also what fetches a Kafka or
# other versions of Postgres, with "interop" what other people's clients run on.
# Installs with apt what is missing; says what to install where it cannot.
set -euo pipefail

missing=()
command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || missing+=(pgbouncer)
command -v kcat >/dev/null || missing+=(kcat)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
if [ "${1:-}" = kafka ] || [ "${1:-}" = postgres ]; then
	command -v java >/dev/null || missing+=(default-jre-headless)
	command -v mvn >/dev/null || missing+=(maven)
	command -v xz >/dev/null || missing+=(xz-utils)
fi
if [ "${1:-}" = interop ]; then
	command -v javac >/dev/null || missing+=(default-jdk-headless)
	command -v mvn >/dev/null || missing+=(maven)
	python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)
fi
[ ${#missing[@]} -eq 0 ] && exit 0

root=()
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null && root=(sudo)
fi
if ! command -v apt-get >/dev/null || { [ "$(id -u)" -ne 0 ] && [ ${#root[@]} -eq 0 ]; }; then
	echo "the tests need: ${missing[*]}. Install them with your package manager and run this again." >&2
	exit 1
fi
echo "installing for the tests: ${missing[*]}"
"${root[@]}" apt-get update -qq
# The tests start servers of their own; a cluster that the package may set up
# on port 5432, or a pooler on 6432, is not touched.
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
