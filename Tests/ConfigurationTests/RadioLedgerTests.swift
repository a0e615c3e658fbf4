// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Testing

/// What scanning costs, counted on a clock that a test turns.
@Suite struct RadioLedgerTests {
    private let names = NameTable()

    private func seconds(_ seconds: Double) -> TimeInterval { TimeInterval(nanoseconds: Int64(seconds * 1e9)) }
    private func at(_ time: Double) -> MonotonicTime { .zero + seconds(time) }

    @Test func timeIsCountedForTheProfileInForce() throws {
        var ledger = RadioLedger()
        let radio = names.intern("hci0")
        ledger.radio(radio, .blind, at: at(0), processorTime: seconds(1))
        ledger.begin("economy", holders: ["monitoring"], at: at(10), processorTime: seconds(2))
        ledger.radio(
            radio, .scanning(window: .milliseconds(100), interval: .seconds(1)), at: at(20), processorTime: seconds(2.5)
        )
        ledger.radio(radio, .paused, at: at(40), processorTime: seconds(3))
        ledger.begin("continuous", holders: ["region hall"], at: at(50), processorTime: seconds(4))
        ledger.radio(
            radio, .scanning(window: .milliseconds(100), interval: .milliseconds(100)), at: at(51),
            processorTime: seconds(4))
        ledger.begin("economy", holders: ["monitoring"], at: at(61), processorTime: seconds(6))
        ledger.radio(
            radio, .scanning(window: .milliseconds(100), interval: .seconds(1)), at: at(61), processorTime: seconds(6))
        ledger.settle(at: at(71), processorTime: seconds(6.5))
        try #require(ledger.accounts.map(\.profile) == ["economy", "continuous"])
        #expect(ledger.current == 0)
        let economy = ledger.accounts[0]
        #expect(economy.holders == ["monitoring"])
        #expect(economy.time == seconds(50))
        // A tenth of 20 s and of 10 s; blind and paused it heard nothing.
        #expect(economy.listening == seconds(3))
        #expect(economy.radioShare == 0.06)
        #expect(economy.processorTime == seconds(2.5))
        let continuous = ledger.accounts[1]
        #expect(continuous.time == seconds(11) && continuous.listening == seconds(10))
        #expect(continuous.processorShare == 2.0 / 11)
    }

    @Test func severalRadiosShareTheTime() {
        var ledger = RadioLedger()
        ledger.begin("continuous", holders: ["scan"], at: at(0), processorTime: .zero)
        let always = RadioActivity.scanning(window: .milliseconds(100), interval: .milliseconds(100))
        ledger.radio(names.intern("hci0"), always, at: at(0), processorTime: .zero)
        ledger.radio(names.intern("hci1"), .blind, at: at(0), processorTime: .zero)
        ledger.settle(at: at(8), processorTime: .zero)
        #expect(ledger.accounts[0].radioShare == 0.5)
    }

    /// A moment that a source tells of may lie a little before the last one.
    @Test func timeDoesNotGoBack() {
        var ledger = RadioLedger()
        ledger.begin(nil, holders: [], at: at(5), processorTime: .zero)
        ledger.settle(at: at(9), processorTime: .zero)
        ledger.radio(names.intern("hci0"), .paused, at: at(8), processorTime: .zero)
        ledger.settle(at: at(10), processorTime: .zero)
        #expect(ledger.accounts[0].time == seconds(5))
        #expect(ledger.accounts[0].radioShare == 0 && ledger.accounts[0].processorShare == 0)
    }

    @Test func accountsAreBounded() {
        var ledger = RadioLedger()
        for number in 0..<1000 {
            let profile = number.isMultiple(of: 2) ? "continuous" : "economy"
            ledger.begin(profile, holders: ["region \(number)"], at: at(Double(number)), processorTime: .zero)
        }
        ledger.settle(at: at(1000), processorTime: .zero)
        #expect(ledger.accounts.count < 70)
        let total = ledger.accounts.reduce(0) { $0 + $1.time.nanoseconds }
        #expect(total == seconds(1000).nanoseconds)
    }
}
