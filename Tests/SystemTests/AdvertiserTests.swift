// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Glibc
import HCI
import LinuxIO
import Scanner
import Testing

/// The advertiser against a controller that a script plays.
@Suite struct AdvertiserTests {
    private static let uuid = "fda50693a4e24fb1afcfc6eb07647825"
    private static let data = "0201061aff4c000215\(uuid)000a0007c5"

    private final class Controller {
        let advertiser: Advertiser
        private let script: FileDescriptor
        private(set) var changes: [Advertiser.Change] = []

        init(interval: Int64 = 100) throws {
            var pair: [Int32] = [0, 0]
            let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            try #require(unsafe socketpair(AF_UNIX, type, 0, &pair) == 0)
            script = FileDescriptor(owning: pair[1])
            let uuid = try #require(Hexadecimal.octets(AdvertiserTests.uuid))
            let beacon = try #require(
                IBeaconAdvertisement(uuid: uuid, major: 10, minor: 7, measuredPower: -59))
            advertiser = Advertiser(
                AdapterSocket(controller: FileDescriptor(owning: pair[0])),
                parameters: try #require(AdvertisingParameters(nanoseconds: interval * 1_000_000, data: beacon.data)))
            advertiser.start(at: .zero) { changes.append($0) }
        }

        func command() throws -> String? {
            var buffer = [UInt8](repeating: 0, count: 300)
            return try script.read(into: &buffer).map { Hexadecimal.text(buffer[..<$0]) }
        }

        func complete(_ opcode: String, status: String = "00", _ parameters: String = "") throws {
            let length = Hexadecimal.text([UInt8(4 + parameters.count / 2)])
            try answer("040e\(length)01\(opcode)\(status)\(parameters)")
        }

        func answer(_ packet: String) throws {
            _ = try script.write(try #require(Hexadecimal.octets(packet)))
            advertiser.receive(at: .zero) { changes.append($0) }
        }

        func stop() { advertiser.stop(at: .zero) { changes.append($0) } }
        func timer(at time: MonotonicTime) { advertiser.timerFired(at: time) { changes.append($0) } }

        /// Answers commands with success until one comes that is not in the list.
        func succeed(_ opcodes: String...) throws {
            for opcode in opcodes {
                let command = try #require(try command())
                #expect(command.dropFirst(2).hasPrefix(opcode), "\(command)")
                try complete(opcode, opcode == "0210" ? AdvertiserTests.supported(legacy: true, extended: false) : "")
            }
        }
    }

    /// Supported commands: octet 25, bits 5 and 7, octet 26, bit 1; octet 36, bits 2, 3 and 5.
    private static func supported(legacy: Bool, extended: Bool) -> String {
        (0..<64).map { octet in
            switch octet {
            case 25: legacy ? "a0" : "00"
            case 26: legacy ? "02" : "00"
            case 36: extended ? "2c" : "00"
            default: "00"
            }
        }.joined()
    }

    @Test func aLegacyControllerAdvertisesAndStops() throws {
        let controller = try Controller()
        #expect(try controller.command() == "01021000")
        try controller.complete("0210", Self.supported(legacy: true, extended: false))
        #expect(try controller.command() == "010a200100")
        try controller.complete("0a20", status: "0c")
        // 160 slots of 0.625 ms, ADV_NONCONN_IND, own address public, all channels, no filter.
        #expect(try controller.command() == "0106200fa000a00003" + "0000000000000000" + "0700")
        try controller.complete("0620")
        #expect(try controller.command() == "010820201e\(Self.data)00")
        try controller.complete("0820")
        #expect(try controller.command() == "010a200101")
        #expect(controller.changes.isEmpty)
        try controller.complete("0a20")
        #expect(controller.changes == [.advertising])
        #expect(controller.advertiser.deadline == .distantFuture)
        controller.stop()
        #expect(try controller.command() == "010a200100")
        #expect(controller.changes == [.advertising], "the controller has not said yet that it stopped")
        try controller.complete("0a20")
        #expect(controller.changes == [.advertising, .stopped(problem: nil)])
        #expect(try controller.command() == nil)
    }

    @Test func anExtendedControllerIsGivenASetOfItsOwn() throws {
        let controller = try Controller(interval: 1000)
        _ = try controller.command()
        try controller.complete("0210", Self.supported(legacy: true, extended: true))
        #expect(try controller.command() == "013920060001ef000000")
        // Unknown advertising identifier: there was no such set.
        try controller.complete("3920", status: "42")
        #expect(
            try controller.command()
                == "01362019ef1000400600400600070000000000000000" + "007f010001" + "0000")
        try controller.complete("3620", "07")
        #expect(try controller.command() == "01372022ef03011e\(Self.data)")
        try controller.complete("3720")
        #expect(try controller.command() == "013920060101ef000000")
        try controller.complete("3920")
        #expect(controller.changes == [.advertising])
        #expect(controller.advertiser.usesExtendedCommands)
        controller.stop()
        #expect(try controller.command() == "013920060001ef000000")
        try controller.complete("3920")
        #expect(try controller.command() == "013c2001ef")
        try controller.complete("3c20")
        #expect(controller.changes == [.advertising, .stopped(problem: nil)])
    }

    @Test func theOtherCommandsAreTriedOnce() throws {
        let controller = try Controller()
        _ = try controller.command()
        try controller.complete("0210", Self.supported(legacy: true, extended: true))
        _ = try controller.command()
        try controller.complete("3920", status: "0c")
        _ = try controller.command()
        try controller.complete("3620", status: "0c")
        #expect(try controller.command() == "010a200100")
        try controller.complete("0a20", status: "0c")
        #expect(try controller.command()?.hasPrefix("010620") == true)
        try controller.complete("0620", status: "0c")
        #expect(
            controller.changes == [
                .failed(
                    reason:
                        "LE Set Advertising Parameters: command disallowed (0x0C); another program (bluetoothd?) may be advertising"
                )
            ])
        #expect(try controller.command() == nil)
        controller.stop()
        #expect(try controller.command() == nil, "nothing was begun, so nothing is taken back")
        #expect(controller.changes.last == .stopped(problem: nil))
    }

    @Test func aControllerWithoutAdvertisingIsTold() throws {
        let controller = try Controller()
        _ = try controller.command()
        try controller.complete("0210", Self.supported(legacy: false, extended: false))
        #expect(controller.changes == [.failed(reason: "the controller has no commands for advertising")])
    }

    @Test func anEnableWithoutAnAnswerIsTakenBack() throws {
        let controller = try Controller()
        try controller.succeed("0210", "0a20", "0620", "0820")
        #expect(try controller.command() == "010a200101")
        controller.stop()
        #expect(try controller.command() == "010a200100")
        // The late answer to the enable looks like that to the disable; either way the disable was sent.
        try controller.complete("0a20")
        #expect(controller.changes == [.stopped(problem: nil)])
    }

    @Test func aControllerThatDoesNotAnswerTheDisableIsReported() throws {
        let controller = try Controller()
        try controller.succeed("0210", "0a20", "0620", "0820", "0a20")
        controller.stop()
        controller.timer(at: .zero + Advertiser.timeLimit)
        #expect(
            controller.changes.last
                == .stopped(
                    problem: "the controller does not answer LE Set Advertising Enable; it may still advertise"))
    }

    @Test func aHardwareErrorStartsAnew() throws {
        let controller = try Controller()
        try controller.succeed("0210", "0a20", "0620", "0820", "0a20")
        try controller.answer("04100100")
        #expect(!controller.advertiser.isAdvertising)
        #expect(try controller.command() == "01021000")
    }

    @Test func silenceWhileItIsSetUpIsAFailure() throws {
        let controller = try Controller()
        controller.timer(at: .zero + .seconds(1))
        #expect(controller.changes.isEmpty)
        controller.timer(at: .zero + .seconds(2))
        #expect(
            controller.changes == [.failed(reason: "the controller does not answer Read Local Supported Commands")])
    }

    private static let intervals: [(milliseconds: Int64, slots: UInt16)] = [
        (1, 32), (20, 32), (100, 160), (1022, 1635), (10_240, 16_384), (.max / 1_000_000, 16_384),
    ]

    @Test(arguments: intervals)
    func intervalsAreBroughtIntoTheRange(milliseconds: Int64, slots: UInt16) {
        #expect(AdvertisingParameters(nanoseconds: milliseconds * 1_000_000, data: [])?.intervalSlots == slots)
    }

    @Test func theDecoderReadsWhatIsEncoded() throws {
        let octets = try #require(Hexadecimal.octets(Self.uuid))
        for (major, minor, power) in [(0, 0, -127), (10, 7, -59), (65_535, 65_535, 20)] {
            let beacon = try #require(
                IBeaconAdvertisement(
                    uuid: octets, major: UInt16(major), minor: UInt16(minor), measuredPower: Int8(power)))
            let decoder = FrameDecoder()
            var writer = JSONWriter()
            var claimed: Int8?
            let ending = decoder.forEachFrame(in: beacon.data.span) { frame, payload in
                decoder.write(frame, payload, into: &writer)
                claimed = frame.measuredPower
            }
            guard case .complete = ending else {
                Issue.record("the data does not end with a structure")
                continue
            }
            #expect(
                writer.text
                    == "{\"format\":\"ibeacon\",\"uuid\":\"fda50693-a4e2-4fb1-afcf-c6eb07647825\",\"major\":\(major),\"minor\":\(minor),\"tx_power\":\(power)}"
            )
            #expect(claimed == Int8(power))
        }
        #expect(IBeaconAdvertisement(uuid: Array(octets.dropLast()), major: 0, minor: 0, measuredPower: 0) == nil)
        #expect(AdvertisingParameters(nanoseconds: 0, data: [UInt8](repeating: 0, count: 32)) == nil)
    }
}
