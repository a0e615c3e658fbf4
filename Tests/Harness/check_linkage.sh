#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Holds that the static release binary has nothing of Foundation in it and stays within its size. ldd cannot tell: what
# is linked statically is no library any more, so the binary's own symbols are looked at, before stripping.
#
# usage: check_linkage.sh BEACOND
#        check_linkage.sh --self-test    (the check sees a program that does import Foundation)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -eq 1 ]] || { sed -n '/^# usage: /,/^[^#]/s/^# //p' "$0" >&2; exit 64; }

# Mangled Swift names carry their module's name with its length in front; the C part, CoreFoundation, has CF names.
# Swift's own library has a few symbols with "foundation" in them, which are none of these.
readonly foundation='(10Foundation|20FoundationEssentials|29FoundationInternationalization)|^_{0,2}CF(Runtime|String|Array|Data|Date|URL|RunLoop)'

# Prints the symbols of Foundation that the program defines.
foundation_symbols() {
    nm --defined-only --format=just-symbols "$1" | grep -E "$foundation" || true
}

self_test() {
    local folder
    folder=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$folder'" EXIT
    printf '%s\n' 'print("none")' >"$folder/none.swift"
    printf '%s\n' 'import FoundationEssentials' 'print(Date.now.timeIntervalSince1970)' >"$folder/essentials.swift"
    printf '%s\n' 'import Foundation' 'print(DateFormatter().string(from: Date()))' >"$folder/whole.swift"
    for name in none essentials whole; do
        swiftc -static-stdlib "$folder/$name.swift" -o "$folder/$name" 2>/dev/null
        printf '%-12s %6d symbols\n' "$name" "$(foundation_symbols "$folder/$name" | wc -l)"
    done
    [[ -z $(foundation_symbols "$folder/none") ]] || { echo "found Foundation where there is none" >&2; return 1; }
    [[ -n $(foundation_symbols "$folder/essentials") ]] || { echo "missed FoundationEssentials" >&2; return 1; }
    [[ -n $(foundation_symbols "$folder/whole") ]] || { echo "missed Foundation" >&2; return 1; }
}

if [[ $1 == --self-test ]]; then
    self_test
    exit
fi

binary=$1
[[ -f $binary ]] || { echo "$binary is not there; build it first (make release)" >&2; exit 66; }
status=0

# A stripped binary has no symbols, and one that is linked dynamically has Foundation elsewhere: both would pass for
# the wrong reason.
if ! nm --defined-only --format=just-symbols "$binary" 2>/dev/null | grep -c '^swift_retain$' >/dev/null; then
    echo "$binary: expected an unstripped binary with the Swift runtime linked statically (make release)" >&2
    exit 1
fi

symbols=$(foundation_symbols "$binary")
if [[ -n $symbols ]]; then
    echo "$binary defines $(wc -l <<<"$symbols") symbols of Foundation; some target or library imports it:" >&2
    head -5 <<<"$symbols" | swift demangle >&2
    status=1
else
    echo "no symbol of Foundation"
fi

# One call of a function of String that takes another string, such as contains or replacing, brings it in.
if nm --defined-only --format=just-symbols "$binary" | grep -c '12_RegexParser' >/dev/null; then
    echo "$binary holds the regular expression engine, 2 MB: somebody calls String.contains, replacing or the like" >&2
    status=1
fi

size=$(stat --format=%s "$binary")
budget=$(<"$here/binary_size_budget")
echo "$size of $budget bytes, before stripping"
if ((size > budget)); then
    echo "$binary is larger than Tests/Harness/binary_size_budget allows" >&2
    status=1
fi
exit $status
