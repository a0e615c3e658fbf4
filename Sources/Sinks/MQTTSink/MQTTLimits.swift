// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO

/// The times and counts of the MQTT sink; a test shortens them.
struct MQTTLimits {
    /// For TCP and CONNACK together. A broker across a slow mobile link answers in two or three seconds.
    var connectTime = TimeInterval.seconds(10)

    /// Longest time without a PUBACK while one is owed: far above a round trip and a broker's commit to disk, below
    /// the 40 s at which the keepalive would notice.
    var acknowledgementTime = TimeInterval.seconds(15)

    /// Longest wait for the next try while the clock may be what makes the broker's certificate invalid: a machine
    /// without a clock of its own learns the time within seconds of finding the network.
    var clockWait = TimeInterval.seconds(5)
    /// Whether the clock of this machine follows a time source.
    var isClockSynchronized: @Sendable () -> Bool = { Clock.isSynchronized }

    /// How long a sighting may wait for room in the socket: long enough for a burst to drain, short enough that the
    /// transitions behind it do not notice.
    var sightingPatience = TimeInterval.milliseconds(200)

    /// What the end of the program grants to each wait: a living broker answers well inside it, and a batch and the
    /// good-bye together stay below the 5 s that SIGTERM may take.
    var stoppingGrace = TimeInterval.seconds(1)

    /// Longest time between two looks at the clock, at ``SinkContext/isStopping`` and at the keepalive.
    var slice = TimeInterval.milliseconds(100)

    /// Unacknowledged deliveries at QoS 1. libmosquitto sends at most 20 at once; two places are left for the birth
    /// and the health document.
    var window = 18

    /// Longest time between two health documents of one connection, whose counts go on.
    var healthInterval = TimeInterval.seconds(60)

    /// From a connection to the announcements for Home Assistant: what the broker retains of them comes within a round
    /// trip, and is read first.
    var discoveryDelay = TimeInterval.seconds(1)

    /// Longest wait after a birth of Home Assistant, which is busy then, and to which all gateways answer at once.
    var discoveryJitter = TimeInterval.seconds(5)

    /// From what Home Assistant is shown once more at its birth to its end: it needs some tenths of a second to make
    /// entities of it.
    var discoveryFarewell = TimeInterval.seconds(5)

    /// Seconds from the loss of the connection to the will, MQTT 5 only: restarts and short outages stay unseen.
    var willDelay: UInt32 = 60

    /// Seconds after which a sighting is worth nothing, MQTT 5 only: three times the longest usual report interval.
    var sightingExpiry: UInt32 = 30

    /// Bytes that may wait in the socket. The kernel doubles the number for its own book-keeping, so that at most 128 KiB
    /// stand before a transition: about 15 s on a line of 70 kbit/s.
    var sendBuffer: Int32 = 65_536

    /// Milliseconds for which sent bytes may stay unacknowledged by the other machine (TCP_USER_TIMEOUT).
    var userTimeout: Int32 = 30_000
}
