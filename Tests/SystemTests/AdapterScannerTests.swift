// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import HCI
import LinuxIO
import Scanner
import Testing

/// The scanner against a controller that a script plays, over a socket pair that keeps packets whole as the raw channel
/// does.
@Suite struct AdapterScannerTests {
    private final class Controller {
        let scanner: AdapterScanner
        private let script: FileDescriptor
        private(set) var changes: [AdapterScanner.Change] = []
        private(set) var packets: [[UInt8]] = []

        init(window: Int64 = 30, interval: Int64 = 30, isActive: Bool = false) throws {
            var pair: [Int32] = [0, 0]
            let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            try #require(unsafe socketpair(AF_UNIX, type, 0, &pair) == 0)
            script = FileDescriptor(owning: pair[1])
            scanner = AdapterScanner(
                AdapterSocket(controller: FileDescriptor(owning: pair[0])),
                parameters: ScanParameters(
                    interval: .init(nanoseconds: interval * 1_000_000), window: .init(nanoseconds: window * 1_000_000),
                    isActive: isActive))
            scanner.start(at: .zero) { changes.append($0) }
        }

        /// The command that the scanner sent, as hexadecimal digits; nil when it sent none.
        func command() throws -> String? {
            var buffer = [UInt8](repeating: 0, count: 300)
            return try script.read(into: &buffer).map { Hexadecimal.text(buffer[..<$0]) }
        }

        func answer(_ packet: String) throws {
            _ = try script.write(try #require(Hexadecimal.octets(packet)))
            scanner.receive(
                at: .zero, packet: { packet in packets.append(packet.indices.map { packet[$0] }) },
                { changes.append($0) })
        }

        /// Command Complete with a status and, behind it, return parameters.
        func complete(_ opcode: String, status: String = "00", _ parameters: String = "") throws {
            let length = Hexadecimal.text([UInt8(4 + parameters.count / 2)])
            try answer("040e\(length)01\(opcode)\(status)\(parameters)")
        }

        func timer(at time: MonotonicTime) { scanner.timerFired(at: time) { changes.append($0) } }
    }

    /// Supported commands with the bits of extended scanning (octet 37, bits 5 and 6) set or not.
    private func supported(extended: Bool) -> String {
        (0..<64).map { $0 == 37 && extended ? "60" : "00" }.joined()
    }

    @Test func aLegacyControllerIsBroughtToScanning() throws {
        let controller = try Controller(window: 30, interval: 60)
        #expect(try controller.command() == "01021000")
        try controller.complete("0210", supported(extended: false))
        #expect(try controller.command() == "010c20020000")
        try controller.complete("0c20", status: "0c")
        // Passive, interval 96 and window 48 slots of 0.625 ms, own address public, no filter.
        #expect(try controller.command() == "010b200700600030000000")
        try controller.complete("0b20")
        // Enabled, filter for duplicates off.
        #expect(try controller.command() == "010c20020100")
        try controller.complete("0c20")
        #expect(controller.changes == [.scanning])
        #expect(controller.scanner.deadline == .distantFuture)
        controller.scanner.stop()
        #expect(try controller.command() == "010c20020000")
    }

    @Test func anExtendedControllerGetsTheExtendedCommandsOnly() throws {
        let controller = try Controller(isActive: true)
        #expect(try controller.command() == "01021000")
        try controller.complete("0210", supported(extended: true))
        #expect(try controller.command() == "01422006000000000000")
        try controller.complete("4220")
        #expect(try controller.command() == "014120080000010130003000")
        try controller.complete("4120")
        #expect(try controller.command() == "01422006010000000000")
        try controller.complete("4220")
        #expect(controller.changes == [.scanning])
        controller.scanner.stop()
        #expect(try controller.command() == "01422006000000000000")
    }

    @Test func answersToOtherProgramsAreNotOurs() throws {
        let controller = try Controller()
        _ = try controller.command()
        try controller.complete("0c20")
        try controller.answer("040f0400010c20")
        #expect(try controller.command() == nil)
        #expect(controller.changes.isEmpty)
    }

    @Test func refusalsNameTheCommandAndTheLikelyCulprit() throws {
        let controller = try Controller()
        _ = try controller.command()
        try controller.complete("0210", supported(extended: false))
        try controller.complete("0c20")
        // Command Status with a failure ends a command too.
        try controller.answer("040f040c010b20")
        #expect(
            controller.changes == [
                .failed(
                    reason:
                        "LE Set Scan Parameters: command disallowed (0x0C); another program (bluetoothd?) may be scanning"
                )
            ])
        controller.scanner.stop()
        _ = try controller.command()
        _ = try controller.command()
        #expect(try controller.command() == nil, "a scan that was not ours is left alone")
    }

    @Test func aControllerThatDoesNotAnswerIsNoticed() throws {
        let controller = try Controller()
        #expect(controller.scanner.deadline == .zero + AdapterScanner.timeLimit)
        controller.timer(at: .zero + .seconds(1))
        #expect(controller.changes.isEmpty)
        controller.timer(at: .zero + .seconds(2))
        #expect(
            controller.changes == [
                .failed(reason: "the controller does not answer Read Local Supported Commands")
            ])
    }

    @Test func reportsAreHandedOutAndAHardwareErrorStartsAnew() throws {
        let controller = try Controller()
        for _ in 0..<4 {
            guard let command = try controller.command() else { break }
            try controller.complete(
                String(command.dropFirst(2).prefix(4)), command == "01021000" ? supported(extended: false) : "")
        }
        #expect(controller.changes == [.scanning])
        let report = "043e0c02010400b30b7c8fe25800d4"
        try controller.answer(report)
        #expect(controller.packets.map { Hexadecimal.text($0) } == [report])
        try controller.answer("04100100")
        #expect(!controller.scanner.isScanning)
        #expect(try controller.command() == "01021000")
    }

    @Test func anyEventIsSurvived() throws {
        let controller = try Controller()
        for length in 0...8 {
            for code in ["0e", "0f", "10", "3e", "ff"] {
                try controller.answer("04" + code + Hexadecimal.text([UInt8(length)]))
                try controller.answer(
                    "04" + code + Hexadecimal.text([UInt8(length)]) + String(repeating: "00", count: length))
            }
        }
        #expect(controller.changes.isEmpty)
    }
}

@Suite struct SourceSpecificationTests {
    @Test func sourcesAreNamedByOneString() throws {
        #expect(try SourceSpecification("hci:0") == .adapter(index: 0))
        #expect(try SourceSpecification("btsnoop:/a/b:c.log") == .capture(path: "/a/b:c.log"))
        #expect(try SourceSpecification("simulate:home.json") == .simulation(path: "home.json"))
        #expect(try SourceSpecification("hci:1").adapterName == "hci1")
        #expect(try SourceSpecification("btsnoop:/a/walk.btsnoop").adapterName == "walk")
        #expect(try SourceSpecification("hci:3").description == "hci:3")
    }

    @Test(arguments: ["", "hci", "hci:", "hci:x", "hci:-1", "hci:65535", "btsnoop:", "simulate:", "usb:0", ":"])
    func otherStringsAreRefused(text: String) {
        #expect(throws: SourceSpecification.ParseError.self) { try SourceSpecification(text) }
    }
}
