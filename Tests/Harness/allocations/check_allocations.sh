#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows that a replay allocates nothing once it is warm: a capture of N packets and its first half are replayed under a
# malloc interposer, and the threads (read, parse, decode, presence, offer; the sink's) must have made exactly as many
# requests for memory in both. What the second half asked for is the difference. Once more with the events spelled
# instead of offered, as sinks spell them.
#
# usage: check_allocations.sh BEACOND [PACKETS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 ]] || { sed -n '/^# usage: /s/^# //p' "$0" >&2; exit 64; }
beacond=$1
packets=${2:-1000000}
[[ -x $beacond ]] || { echo "$beacond is no program; build it first (make release)" >&2; exit 66; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${CC:-cc}" -std=c17 -O2 -shared -fPIC -o "$folder/count.so" "$here/count_allocations.c"
"$here/../make_capture.py" "$folder/whole.btsnoop" --packets "$packets" >/dev/null
"$here/../make_capture.py" "$folder/half.btsnoop" --packets $((packets / 2)) >/dev/null

# count CAPTURE OPTION...
# Prints "FIRST OTHERS", the counts of the loop's thread and of all other threads.
count() {
    local counts=$folder/counts
    rm -f "$counts"
    if ! ALLOCATION_COUNTS=$counts LD_PRELOAD=$folder/count.so \
        "$beacond" replay "$@" >/dev/null 2>"$folder/log"; then
        cat "$folder/log" >&2
        return 1
    fi
    [[ -s $counts ]] || { echo "no counts: did the program leave without exit(3)?" >&2; return 1; }
    cat "$counts"
}

# check OPTION...
check() {
    local half whole half_loop half_others whole_loop whole_others
    half=$(count "$folder/half.btsnoop" "$@")
    whole=$(count "$folder/whole.btsnoop" "$@")
    read -r half_loop half_others <<<"$half"
    read -r whole_loop whole_others <<<"$whole"
    printf '%-34s %12s %14s\n' "allocations with $*" 'loop thread' 'other threads'
    printf '%-34s %12d %14d\n' "replay of $((packets / 2)) packets" "$half_loop" "$half_others" \
        "replay of $packets packets" "$whole_loop" "$whole_others" \
        'in the second half' $((whole_loop - half_loop)) $((whole_others - half_others))
    # Together, because it is by chance which thread is the first to need what the runtime makes once for a type.
    if [[ $((whole_loop + whole_others)) -ne $((half_loop + half_others)) ]]; then
        echo "nothing may be allocated in the second half; stacks of the loop from where the first half ended:" >&2
        ALLOCATION_TRACE=$half_loop LD_PRELOAD=$folder/count.so \
            "$beacond" replay "$folder/whole.btsnoop" "$@" 2>&1 >/dev/null | head -200 >&2 || true
        exit 1
    fi
}

check --sink null
check --emit events
