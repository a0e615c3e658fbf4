# SPDX-License-Identifier: Apache-2.0
#
# The checks of the system tier, one function check_NAME each. The host runs them in this order.
#
# On the host are three controllers: `main` and `other` know the extended commands, `old` does not.

# Must be the first: the modules are loaded for the one after it.
check_no_bluetooth() {
    refuses 69 "modprobe bluetooth" /guest/beacond run --source hci:0 --sink stdout
}

# Whether it then ends or waits is not judged here.
check_no_adapter() {
    start hci:0
    says "hci0: no such adapter"
}

check_adapter_comes_late() {
    start hci:0
    says "hci0: no such adapter"
    air beacons 5 100
    plug main
    sees 5 30
}

check_raw_channel() {
    plug main
    air beacons 20 100
    start hci:0
    sees 20
    [ "$(state main extended)" = true ] || fail "the extended commands were not used"
    [ "$(state main active)" = false ] || fail "the scan is active"
}

check_raw_channel_legacy() {
    plug old
    air beacons 20 100
    start hci:0
    sees 20
    [ "$(state old extended)" = false ] || fail "extended commands for a controller without"
}

check_raw_channel_btvirt() {
    plug_btvirt
    advertise_by_hand hci1
    start hci:0
    sees 1
}

check_advertised_by_another_adapter() {
    plug main
    plug old
    advertise_by_hand "$adapter"
    start hci:0
    sees 1
    grep -q '"major":42,"minor":7' "$work/out" || fail "another beacon than the one that was advertised"
}

check_end_disables_scan() {
    plug main
    start hci:0
    becomes main scanning true 10 || fail "no scan"
    stop || fail "exit status $?"
    [ "$(state main scanning)" = false ] || fail "the controller goes on scanning"
}

check_adapter_down() {
    plug main
    air beacons 5 100
    hciconfig hci0 down
    # As the unit runs it; with CAP_NET_ADMIN it could bring the adapter up.
    start hci:0 $nobody_with_net_raw
    within 5 grep -q '"event":"adapter".*"state":"\(absent\|blind\|failed\)"' "$work/out" || fail "no event says so"
    grep -qi 'is down\|adapter up?\|power on' "$work/log" || fail "the log does not say why"
    is_running || fail "beacond ended"
    bring_up hci0
    sees 5 20
}

# The kernel lets anybody open the socket, and refuses the commands.
check_unprivileged() {
    plug main
    start hci:0 $nobody --inh-caps=-all --bounding-set=-all
    says CAP_NET_RAW
}

check_net_raw_is_enough() {
    plug main
    air beacons 20 100
    start hci:0 $nobody_with_net_raw
    sees 20
    grep -q '^CapEff:.*0000000000002000$' "/proc/$(cat "$work/beacond")/status" || fail "other capabilities"
    stop || fail "exit status $?"
    [ "$(state main scanning)" = false ] || fail "the controller goes on scanning"
}

# The service as it is shipped: the sandbox, the system calls, the user, the notification, the watchdog's socket.
check_service() {
    plug main
    air beacons 20 100
    configure hci:0 '{ "kind": "json", "config": { "path": "/var/log/beacond/events.jsonl" } }' \
        >/etc/beacond/plugins.json
    # There is no journal here.
    mkdir -p /run/systemd/system/beacond.service.d
    printf '[Service]\nStandardError=append:%s\n' "$work/log" >/run/systemd/system/beacond.service.d/log.conf
    systemctl daemon-reload
    systemctl start beacond || fail "it does not start: $(systemctl show --property=Result,ExecMainStatus beacond)"
    ln -s /var/log/beacond/events.jsonl "$work/out"
    sees 20
    holds CapEff 0000000000002000
    holds CapBnd 0000000000002000
    holds NoNewPrivs 1
    holds Seccomp 2
    ! grep -q '^Uid:.0' "/proc/$(main_process)/status" || fail "it runs as root"
    systemctl reload beacond && systemctl is-active beacond || fail "it does not survive a reload"
    systemctl stop beacond
    result=$(systemctl show --value --property=Result beacond)
    [ "$result" = success ] || fail "it ended with $result"
    [ "$(state main scanning)" = false ] || fail "the controller goes on scanning"
    cp /guest/net-admin.conf /run/systemd/system/beacond.service.d/
    systemctl daemon-reload
    systemctl start beacond || fail "it does not start with net-admin.conf"
    holds CapEff 0000000000003000
    detail "systemd $(systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p')"
}

main_process() {
    systemctl show --value --property=MainPID beacond
}

# holds KEY VALUE: that is in the status of the service's process.
holds() {
    grep -q "^$1:.$2\$" "/proc/$(main_process)/status" || fail "$(grep "^$1:" "/proc/$(main_process)/status"), not $2"
}

# Every report that the controller sent was received: 90 beacons at 105 ms on average are 850 reports a second.
check_load() {
    plug main
    start hci:0
    becomes main scanning true 10 || fail "no scan"
    local before sent start rate
    air beacons 90 100
    sleep 2
    before=$(state main reports)
    start=$(now)
    sleep 5
    rate=$((($(state main reports) - before) * 100 / ($(now) - start)))
    air quiet
    # The events tell the count of each beacon's reports once a second: one more of each, and all are told.
    sleep 2
    air once
    sent=$(state main reports)
    sleep 2
    [ "$(received)" = "$sent" ] || fail "$sent reports sent, $(received) received"
    [ "$(seen)" = 90 ] || fail "$(seen) of 90 beacons seen"
    [ $rate -ge 700 ] || fail "only $rate reports a second were sent"
    detail "$sent reports sent and received, $rate a second"
}

# The reports behind the events that were written.
received() {
    awk -F'"count":' '/"format":/ { sum += $2 } END { print sum + 0 }' "$work/out"
}

check_beside_bluetoothd() {
    plug main
    start_bluetoothd
    air beacons 20 100
    start hci:0
    sees 20
    kill -0 "$(cat "$work/bluetoothd.bridge")" || fail "bluetoothd ended: $(cat "$work/bluetoothd")"
}

check_unplugged() {
    plug main
    air beacons 5 100
    start hci:0
    sees 5
    unplug main
    within 2 grep -q '"event":"adapter".*"state":"\(absent\|blind\)"' "$work/out" || fail "no event says so"
    is_running || fail "beacond ended"
    ! grep -q '"event":"exit"' "$work/out" || fail "beacons have left because the adapter did"
}

# F13: named by its address, found under another index.
check_returns_under_another_index() {
    local returned
    plug main
    air beacons 5 100
    start hci:00:1B:DC:00:00:01
    sees 5
    unplug main
    plug other
    [ "$adapter" = hci0 ] || fail "$adapter took the place of hci0"
    plug main
    [ "$adapter" = hci1 ] || fail "it returned as $adapter"
    look_again
    returned=$(now)
    sees 5 5
    detail "heard $(since "$returned") after the return"
}

check_down_while_scanning() {
    plug main
    air beacons 5 100
    start hci:0
    sees 5
    hciconfig hci0 down
    within 5 grep -q '"event":"adapter".*"state":"\(absent\|blind\|failed\)"' "$work/out" || fail "no event says so"
    bring_up hci0
    look_again
    sees 5 15
}

# F16: another process disables the scan; armed again within a second.
check_scan_disabled_by_another() {
    local round disabled
    plug main
    air beacons 5 100
    start hci:0
    sees 5
    for round in 1 2 3; do
        disabled=$(now)
        hcitool -i hci0 cmd 0x08 0x0042 00 00 00 00 00 00
        becomes main scanning true 2 || fail "not armed again, round $round"
        detail "armed again $(since "$disabled") after the last of three times"
        sleep 1
    done
    look_again
    sees 5
}

check_scan_disabled_by_bluetoothd() {
    plug main
    start_bluetoothd
    air beacons 5 100
    start hci:0
    sees 5
    # A discovery takes ten seconds and the scan: bluetoothd's is active, tells of each beacon once, and is disabled.
    local before=$(state main disables)
    (sleep 1) | timeout 5 btmgmt --index 0 find -l >"$work/btmgmt" 2>&1
    [ "$(state main disables)" -gt "$before" ] || fail "bluetoothd disabled nothing: $(tail -n 1 "$work/btmgmt")"
    sleep 11
    becomes main scanning true 2 || fail "not armed again"
    [ "$(state main active)" = false ] || fail "the scan is still as bluetoothd set it"
    before=$(state main reports)
    sleep 2
    [ $(($(state main reports) - before)) -ge 50 ] || fail "the beacons are not told of again and again"
}

# F17: the firmware crashes; the kernel and beacond both start anew.
check_hardware_error() {
    plug main
    air beacons 5 100
    start hci:0
    sees 5
    local crashed=$(now)
    air hardware_error main
    look_again
    sees 5 3
    detail "heard $(since "$crashed") after the crash"
}

# F14: no answers at first.
check_controller_hangs() {
    plug main
    air beacons 5 100
    air hang main on
    start hci:0
    says "does not answer" 10
    air hang main off
    sees 5 20
}

# F15: answers, reports nothing, until it is restarted.
check_controller_silent() {
    plug main
    air beacons 20 100
    start hci:0
    sees 20
    look_again
    air deafen main on
    within 60 grep -q '"event":"adapter".*"state":"\(blind\|starting\)"' "$work/out" || fail "nobody noticed in 60 s"
    air deafen main off
    look_again
    sees 20 60
}

check_user_channel() {
    plug main
    air beacons 20 100
    hciconfig hci0 down
    start user:0
    sees 20
    stop || fail "exit status $?"
    [ "$(state main scanning)" = false ] || fail "the controller goes on scanning"
}

# Another program has the adapter for itself.
check_user_channel_busy() {
    plug main
    air beacons 5 100
    hciconfig hci0 down
    start user:0
    sees 5
    XDG_RUNTIME_DIR=$work /guest/beacond run --source user:0 --sink stdout --duration 3s >"$work/second" 2>&1
    grep -qi 'busy\|in use\|another' "$work/second" || fail "the second does not say why: $(tail -n 1 "$work/second")"
    look_again
    sees 5
}

check_user_channel_beside_bluetoothd() {
    plug main
    start_bluetoothd
    air beacons 20 100
    within 10 sh -c 'btmgmt info </dev/null | grep -q powered'
    hciconfig hci0 down
    start user:0
    sees 20
}

# One adapter is the beacon and another one hears it, with the commands of both ages; each way to end it is tried.
check_advertise() {
    local beacon signal minor=0
    plug main
    start hci:0
    for beacon in other old; do
        plug $beacon
        for signal in INT TERM HUP; do
            minor=$((minor + 1))
            /guest/beacond advertise --source "hci:${adapter#hci}" --uuid 6b1f0c9e-52d8-4c33-a407-7d20e95b1c84 --major 3 \
                --minor $minor >"$work/trace" 2>&1 &
            echo $! >"$work/advertise.bridge"
            becomes $beacon advertising true 5 || fail "$beacon does not advertise"
            within 5 grep -q "\"major\":3,\"minor\":$minor" "$work/out" || fail "beacon $minor was not heard"
            kill -$signal "$(cat "$work/advertise.bridge")"
            wait "$(cat "$work/advertise.bridge")" || fail "exit status $? after $signal"
            becomes $beacon advertising false 5 || fail "$beacon advertises on after $signal"
        done
    done
}

check_adapters() {
    plug main
    plug old
    hciconfig hci1 down
    /guest/beacond adapters >"$work/out" 2>"$work/log" || fail "exit status $?"
    grep -qi '^hci:0 *00:1b:dc:00:00:01 *up .*nobody' "$work/out" || fail "the first adapter is not told of"
    grep -qi '^hci:1 *00:1b:dc:00:00:03 *down' "$work/out" || fail "the second adapter is not told of"
    start hci:0
    becomes main scanning true 10 || fail "no scan"
    /guest/beacond adapters | grep -q "^hci:0.*beacond scanning ($(cat "$work/beacond"))" || fail "who scans is not told"
}

check_doctor() {
    plug main
    hciconfig hci0 down
    diagnoses 69 'problem.* down'
    bring_up hci0
    diagnoses 0 '^ok'
    air hang main on
    diagnoses 69 'problem.*answer'
    air hang main off
}

# diagnoses STATUS PATTERN
diagnoses() {
    local status
    timeout 20 /guest/beacond doctor >"$work/out" 2>&1
    status=$?
    [ $status = "$1" ] || fail "exit status $status instead of $1"
    grep -q "$2" "$work/out" || fail "it does not say \"$2\""
}

# Without a daemon a command opens the radio; it leaves the controller as it was, and two never share one.
check_scan_and_record() {
    plug main
    air beacons 5 100
    /guest/beacond scan --source hci:0 --duration 3s --json >"$work/out" 2>"$work/log" || fail "exit status $?"
    [ "$(seen)" = 5 ] || fail "$(seen) of 5 beacons seen by scan"
    [ "$(state main scanning)" = false ] || fail "the controller goes on scanning"
    start hci:0
    becomes main scanning true 10 || fail "no scan"
    refuses 75 beacond /guest/beacond record --source hci:0 --duration 1s "$work/recorded"
    stop || fail "exit status $?"
    /guest/beacond record --source hci:0 --duration 2s "$work/recorded" 2>"$work/log" || fail "exit status $?"
    /guest/beacond replay "$work/recorded" --emit events >"$work/out" || fail "exit status $?"
    [ "$(seen)" = 5 ] || fail "$(seen) of 5 beacons recorded"
}

check_rfkill() {
    local switch
    plug main
    for switch in /sys/class/rfkill/rfkill*; do
        [ "$(cat "$switch/name")" = hci0 ] && echo 1 >"$switch/soft"
    done
    start hci:0
    says rfkill
    echo 0 >"$switch/soft"
}
