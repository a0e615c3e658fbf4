#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Both tiers of the virtual radio, after what they need was fetched. What a machine cannot do is skipped with a word, and
# in CI (the variable CI is set) a failure.
#
# usage: test_radio.sh BEACOND
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repository=$here/../..
[[ $# -eq 1 ]] || { sed -n '/^# usage: /s/^# //p' "$0" >&2; exit 64; }

# A preparation that fails says why; the tier that needs it then says what it misses.
"$repository/.ci/packages" radio || :
"$repository/.ci/guest" || :
"$repository/.ci/venv" radio || :

python=$repository/.cache/venv-radio/bin/python
if [[ ! -x $python ]]; then
    echo "skipped virtual radio: .ci/venv radio could not make .cache/venv-radio"
    [[ -z ${CI:-} ]] || exit 69
    exit 0
fi
status=0
"$python" "$here/radio_bumble.py" --beacond "$1" || status=1
"$python" "$here/radio_kernel.py" --beacond "$1" || status=1
exit $status
