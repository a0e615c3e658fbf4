#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Holds that systemd finds no fault with systemd/beacond.service and that its exposure stays low. systemd-analyze wants
# the programs of a unit to exist, so a copy names the program that was built.
#
# usage: check_unit.sh BEACOND
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
[[ $# -eq 1 ]] || { sed -n '/^# usage: /s/^# //p' "$0" >&2; exit 64; }
binary=$(realpath -- "$1")
[[ -x $binary ]] || { echo "$binary is no program; build it first (make build)" >&2; exit 66; }
# systemd's score goes from 0 to 10; 2.0 is where a daemon with a raw radio socket and the network can be.
readonly threshold=20

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unit=$folder/beacond.service
sed "s#/usr/local/bin/beacond#$binary#" "$repository/systemd/beacond.service" >"$unit"

# Only what is said about this unit counts: verify also loads the units that it refers to, whatever the machine has.
status=0
systemd-analyze verify "$unit" >"$folder/verify" 2>&1 || status=$?
if [[ $status -ne 0 ]] || grep -q 'beacond' "$folder/verify"; then
    echo "systemd-analyze verify (exit status $status):" >&2
    cat "$folder/verify" >&2
    exit 1
fi
if ! systemd-analyze security --no-pager --offline=true --threshold=$threshold "$unit" >"$folder/security" 2>&1; then
    cat "$folder/security" >&2
    exit 1
fi
tail -1 "$folder/security"
