#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the initial file system of the guest from what .ci/guest unpacked: busybox, the Bluetooth modules, BlueZ's tools,
# the checks, and beacond with the libraries that it needs.
#
# usage: make_image.sh BEACOND IMAGE
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -eq 2 ]] || { sed -n '/^# usage: /s/^# //p' "$0" >&2; exit 64; }
beacond=$(realpath -- "$1") image=$2
unpacked=$here/../../.cache/guest/tree

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root"/{bin,guest,lib/modules,lib64,usr/bin,usr/sbin}

# A program at its place in the guest, and the libraries that the dynamic linker would load for it.
program() {
    local file=$1 place=$2 library
    install -D --mode=755 "$file" "$root$place"
    { ldd "$file" 2>/dev/null || true; } | while read -r library; do
        if [[ $library == *"not found"* ]]; then
            echo "$file: ${library%% *} is missing; .ci/packages radio installs it" >&2
            exit 1
        fi
        library=$(grep -o '/[^ ]*' <<<"$library" | head -1) || continue
        [[ -e $root$library ]] || install -D --mode=755 "$(realpath "$library")" "$root$library"
    done
}

program "$unpacked/bin/busybox" /bin/busybox
program "$unpacked/bin/hciconfig" /usr/bin/hciconfig
for tool in btmgmt btvirt hcitool; do program "$unpacked/usr/bin/$tool" /usr/bin/$tool; done
program "$unpacked/usr/libexec/bluetooth/bluetoothd" /usr/bin/bluetoothd
program "$(command -v dbus-daemon)" /usr/bin/dbus-daemon
program "$(command -v setpriv)" /usr/bin/setpriv
# The service manager, and beacond as its service; both names are the same file.
program /lib/systemd/systemd /lib/systemd/systemd
program "$(command -v systemctl)" /usr/bin/systemctl
program "$beacond" /usr/local/bin/beacond
strip "$root/usr/local/bin/beacond"
ln -s /usr/local/bin/beacond "$root/guest/beacond"
install -D --mode=644 --target-directory="$root/lib/systemd/system" "$here/guest/checks.service" \
    "$here/../../systemd/beacond.service" /lib/systemd/system/{basic,network,shutdown,sysinit}.target
mkdir -p "$root/etc/beacond"
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
gcc -O2 -Wall -Wextra -Werror -static -D_GNU_SOURCE -o "$root/usr/bin/vhci_bridge" "$here/guest/vhci_bridge.c"

# The modules flat, each after those that it needs: busybox' insmod knows no dependencies.
modules=$(echo "$unpacked"/lib/modules/*)
for module in bluetooth hci_vhci cmac ecb ctr ccm algif_hash algif_skcipher virtio_pci virtio_console; do
    line=$(grep -E "/$module\.ko[^:]*:" "$modules/modules.dep")
    for file in $(tr ' ' '\n' <<<"${line#*:}" | tac) "${line%%:*}"; do
        name=$(basename "$file")
        [[ -e $root/lib/modules/$name ]] || echo "$name" >>"$root/lib/modules/order"
        cp "$modules/$file" "$root/lib/modules/$name"
    done
done

install --mode=755 "$here/guest/init" "$root/init"
install --mode=644 "$here"/guest/{run,start,support,checks.sh,dbus.conf} \
    "$here/../../systemd/beacond.service.d/net-admin.conf" "$root/guest/"
(cd "$root" && find . | cpio --create --format=newc --quiet | zstd --quiet -3) >"$image"
