#!/usr/bin/env bash
# Fetches ClickHouse's engine as PyPI has it (chdb, requirements.txt) and prints
# the python that has it. It comes once and is kept in
# ${WAYBILL_CACHE:-$HOME/.cache/waybill} under a name that changes with what is
# asked for.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${WAYBILL_CACHE:-${HOME:-/tmp}/.cache/waybill}

die() { echo "setup.sh: $*" >&2; exit 1; }
command -v python3 >/dev/null || die "python3 is missing; install it: apt-get install python3 python3-venv"

to=$cache/clickhouse-$( (python3 -c 'import sys; print(sys.version, sys.base_prefix)' && cat "$here/requirements.txt") | sha256sum | cut -c1-12)
if [ ! -d "$to" ]; then
	mkdir -p "$cache"
	tmp=$(mktemp -d "$to.XXXXXX")
	# In a folder of its own that is moved when complete, so that an interrupted
	# run leaves no half of it behind.
	if ! { python3 -m venv "$tmp" && "$tmp/bin/python" -m pip install --disable-pip-version-check -q --no-deps -r "$here/requirements.txt"; } >"$tmp/fetch.log" 2>&1; then
		tail -5 "$tmp/fetch.log" >&2
		rm -rf "$tmp"
		die "chdb could not be fetched"
	fi
	mv -T "$tmp" "$to" 2>/dev/null || rm -rf "$tmp" # another run was faster
fi
echo "$to/bin/python"
