#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Holds that systemd finds no fault with systemd/beacond.service, alone and with each of its drop-ins, and that its
# exposure stays low. systemd-analyze wants the programs of a unit to exist, so a copy names the program that was built.
#
# usage: check_unit.sh BEACOND
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
[[ $# -eq 1 ]] || { sed -n '/^# usage: /s/^# //p' "$0" >&2; exit 64; }
binary=$(realpath -- "$1")
[[ -x $binary ]] || { echo "$binary is no program; build it first (make build)" >&2; exit 66; }

# The most exposure that is allowed, in tenths; systemd's score goes from 0 to 10. 2.0 is where a daemon with a raw radio
# socket and the network can be; a drop-in pays for what it gives.
declare -A limits=([alone]=20 [net-admin]=22 [serial]=23)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unit=$folder/beacond.service
sed "s#/usr/local/bin/beacond#$binary#" "$repository/systemd/beacond.service" >"$unit"

check() {
    local name=$1 status=0
    # Only what is said about this unit counts: verify also loads the units that it refers to, whatever the machine has.
    systemd-analyze verify "$unit" >"$folder/verify" 2>&1 || status=$?
    if [[ $status -ne 0 ]] || grep -q 'beacond' "$folder/verify"; then
        echo "$name: systemd-analyze verify (exit status $status):" >&2
        cat "$folder/verify" >&2
        return 1
    fi
    if ! systemd-analyze security --no-pager --offline=true "--threshold=${limits[$name]}" "$unit" \
        >"$folder/security" 2>&1; then
        cat "$folder/security" >&2
        echo "$name: more exposed than ${limits[$name]} tenths" >&2
        return 1
    fi
    printf '%-10s %s\n' "$name" "$(tail -1 "$folder/security")"
}

check alone
for drop_in in "$repository"/systemd/beacond.service.d/*.conf; do
    name=$(basename "$drop_in" .conf)
    [[ -n ${limits[$name]:-} ]] || { echo "$drop_in: no limit is set for it in $0" >&2; exit 1; }
    install -D --mode=644 "$drop_in" "$unit.d/$name.conf"
    check "$name"
    rm "$unit.d/$name.conf"
done
