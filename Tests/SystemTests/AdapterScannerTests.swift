// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI
import Scanner
import Testing

/// The scanner against controllers that a script plays: bring-up.
@Suite struct AdapterScannerTests {
    private let reading: [String] = ["011000", "091000", "021000", "032000"]

    @Test func aLegacyControllerIsBroughtToScanning() throws {
        let controller = try ScriptedController(window: 30, interval: 60)
        controller.statuses[.leSetScanEnable] = [0x0C, 0]
        try controller.start()
        // Disabled; passive, interval 96 and window 48 slots of 0.625 ms, own address public, no filter; enabled, filter
        // for duplicates off.
        #expect(
            controller.takeCommands() == reading + ["0c20020000", "0b200700600030000000", "0c20020100"])
        #expect(
            controller.takeChanges() == [
                .state(.starting, reason: nil),
                .activity(ScriptedController.parameters(window: 30, interval: 60)), .state(.scanning, reason: nil),
            ])
        #expect(controller.scanner.facts.version == 9)
        #expect(controller.scanner.facts.address == 0x001A_7DDA_7113)
        controller.scanner.stop()
        try controller.settle()
        #expect(controller.takeCommands() == ["0c20020000"])
    }

    @Test func anExtendedControllerGetsTheExtendedCommandsOnly() throws {
        let controller = try ScriptedController(isActive: true)
        controller.hasExtended = true
        try controller.start()
        #expect(
            controller.takeCommands()
                == reading + ["422006000000000000", "4120080000010130003000", "422006010000000000"])
        controller.scanner.stop()
        try controller.settle()
        #expect(controller.takeCommands() == ["422006000000000000"])
    }

    @Test func theCodedPHYIsScannedWhereThereIsOne() throws {
        let controller = try ScriptedController()
        controller.hasExtended = true
        controller.hasCoded = true
        try controller.start()
        #expect(controller.takeCommands().dropFirst(5).first == "41200d00000500300030000090009000")
    }

    @Test(arguments: [UInt8(0x11), 0x12]) func aRefusedCodedPHYIsRememberedAndLeftOut(status: UInt8) throws {
        let controller = try ScriptedController()
        controller.hasExtended = true
        controller.hasCoded = true
        controller.statuses[.leSetExtendedScanParameters] = [status, 0]
        try controller.start()
        #expect(controller.scanner.isScanning)
        #expect(
            controller.takeCommands().dropFirst(5).prefix(2) == [
                "41200d00000500300030000090009000", "4120080000010030003000",
            ])
        try controller.send("04100101")
        #expect(controller.scanner.isScanning)
        #expect(controller.takeCommands().dropFirst(5).first == "4120080000010030003000")
    }

    @Test func anExclusiveControllerIsResetAndItsMasksAreSet() throws {
        let controller = try ScriptedController(.exclusive)
        controller.hasExtended = true
        try controller.start()
        #expect(
            controller.takeCommands() == ["030c00"] + reading + [
                "010c08ffffffffff1f0020", "0120080210000000000000", "422006000000000000", "4120080000010030003000",
                "422006010000000000",
            ])
    }

    @Test(arguments: [Opcode.leSetExtendedScanEnable, .leSetExtendedScanParameters], [UInt8(0x01), 0x11, 0x12])
    func whatAControllerCannotDoIsAFactAboutIt(opcode: Opcode, status: UInt8) throws {
        let controller = try ScriptedController(.stream)
        controller.hasExtended = true
        controller.statuses[opcode] = [status]
        try controller.start()
        #expect(controller.scanner.isScanning)
        #expect(controller.takeOpcodes().suffix(3) == [.leSetScanEnable, .leSetScanParameters, .leSetScanEnable])
        // It is remembered by address when the controller comes back.
        controller.port.pullOut()
        try controller.pass(.seconds(5))
        #expect(controller.scanner.isScanning)
        #expect(!controller.takeOpcodes().contains(opcode))
        // Another one is tried as it should be.
        controller.address = 0x14
        controller.statuses = [:]
        controller.port.pullOut()
        try controller.pass(.seconds(5))
        #expect(controller.takeOpcodes().last == .leSetExtendedScanEnable)
    }

    @Test func answersToOtherProgramsAreNotOurs() throws {
        let controller = try ScriptedController()
        controller.unanswered = [.readLocalVersionInformation]
        try controller.start()
        _ = controller.takeCommands()
        try controller.send("040e0401031000")
        try controller.send("040f0400010c20")
        #expect(controller.takeCommands().isEmpty)
        #expect(controller.takeStates() == [.starting])
    }

    @Test func refusalsNameTheCommandAndTheLikelyCulprit() throws {
        let controller = try ScriptedController()
        controller.statuses[.leSetScanParameters] = [0x0C]
        try controller.start()
        let reason =
            "hci7: LE Set Scan Parameters: command disallowed (0x0C); another program (bluetoothd?) may be scanning"
        #expect(controller.takeChanges().last == .state(.blind, reason: reason))
        _ = controller.takeCommands()
        controller.scanner.stop()
        try controller.settle()
        #expect(controller.takeCommands().isEmpty, "a scan that was not ours is left alone")
        // It is tried again, then the adapter is switched off and on, which ends what the others did.
        controller.statuses = [.leSetScanParameters: [0x0C, 0]]
        try controller.pass(.seconds(3))
        #expect(controller.port.powerCycleCount == 1)
        #expect(controller.scanner.isScanning)
    }

    @Test func onMixingTheOtherCommandsAreTriedOnce() throws {
        let controller = try ScriptedController()
        controller.hasExtended = true
        controller.statuses[.leSetExtendedScanParameters] = [0x0C]
        try controller.start()
        #expect(controller.scanner.isScanning)
        #expect(controller.takeOpcodes().suffix(3) == [.leSetScanEnable, .leSetScanParameters, .leSetScanEnable])
        #expect(!controller.scanner.facts.isLegacyOnly, "that it was not allowed now says nothing of the controller")
    }

    @Test func commandStatusWithAFailureEndsACommand() throws {
        let controller = try ScriptedController()
        controller.unanswered = [.leSetScanParameters]
        try controller.start()
        try controller.send("040f041f010b20")
        #expect(
            controller.takeChanges().last == .state(.blind, reason: "hci7: LE Set Scan Parameters: status 0x1f"))
    }

    @Test func commandStatusWithSuccessPromisesAnAnswer() throws {
        let controller = try ScriptedController()
        controller.unanswered = [.leSetScanParameters]
        try controller.start()
        _ = controller.takeCommands()
        try controller.send("040f0400010b20")
        #expect(controller.takeCommands().isEmpty)
        controller.unanswered = []
        try controller.send("040e0401 0b2000".filter { $0 != " " })
        #expect(controller.scanner.isScanning)
    }

    @Test func withoutCreditsACommandWaits() throws {
        let controller = try ScriptedController(.stream)
        controller.credits = 0
        try controller.start()
        // Only the first may be sent.
        #expect(controller.takeOpcodes() == [.reset])
        // An answer to nobody brings one.
        try controller.send("040e03010000")
        #expect(controller.takeOpcodes() == [.readLocalVersionInformation])
        controller.credits = 1
        try controller.send("040f0400010000")
        #expect(controller.scanner.isScanning)
    }

    @Test func aControllerThatNeverHasRoomIsNoticed() throws {
        let controller = try ScriptedController(.exclusive)
        controller.credits = 0
        try controller.start()
        try controller.pass(.seconds(2))
        #expect(
            controller.takeChanges().last
                == .state(.blind, reason: "hci7: the controller has no room for Read Local Version Information"))
    }

    @Test func besideTheKernelCreditsAreItsOwn() throws {
        let controller = try ScriptedController(.shared)
        controller.credits = 0
        try controller.start()
        #expect(controller.scanner.isScanning)
    }

    @Test func anyEventIsSurvived() throws {
        for kind in [PacketChannel.Kind.shared, .exclusive] {
            let controller = try ScriptedController(kind)
            controller.isSilent = true
            try controller.start()
            _ = controller.takeStates()
            for length in 0...8 {
                for code in ["0e", "0f", "3e", "ff"] {
                    try controller.send("04" + code + Hexadecimal.text([UInt8(length)]))
                    try controller.send(
                        "04" + code + Hexadecimal.text([UInt8(length)]) + String(repeating: "00", count: length))
                }
            }
            #expect(controller.takeStates().isEmpty)
        }
    }

    @Test(arguments: [PacketChannel.Kind.shared, .exclusive, .stream])
    func whatCameTogetherIsReadTogether(kind: PacketChannel.Kind) throws {
        let controller = try ScriptedController(kind)
        try controller.start()
        #expect(controller.scanner.packetsOfTurn == 0)
        // More than one call of the system takes, and less than one turn.
        let reports = (10..<60).map { "043e0c02010400b30b7c8fe25800\($0)" }
        for report in reports { try controller.port.send(try #require(Hexadecimal.octets(report))) }
        controller.advance()
        // A short read ends a turn, so that whole packets may take several.
        var read = controller.scanner.packetsOfTurn
        while controller.packets.count < reports.count, controller.scanner.packetsOfTurn > 0 {
            controller.advance()
            read += controller.scanner.packetsOfTurn
        }
        #expect(controller.packets == reports)
        #expect(read == reports.count)
        controller.advance()
        #expect(controller.scanner.packetsOfTurn == 0)
    }

    // MARK: H4

    @Test func aStreamMayComeInAnyPieces() throws {
        let controller = try ScriptedController(.stream)
        try controller.start()
        #expect(controller.scanner.isScanning)
        let report = "043e0c02010400b30b7c8fe25800d4"
        // Split at each octet, with data of other kinds between, and three glued together.
        for digits in ["0201000300aabbcc", report, "03010002ffff"] {
            for index in stride(from: 0, to: digits.utf8.count, by: 2) {
                try controller.send(String(digits.dropFirst(index).prefix(2)))
            }
        }
        try controller.send(report + report + report)
        #expect(controller.packets == [report, report, report, report])
        #expect(controller.scanner.isScanning)
    }

    @Test func aStreamOutOfStepIsFoundAgainByReset() throws {
        let controller = try ScriptedController(.stream)
        try controller.start()
        _ = controller.takeStates()
        _ = controller.takeOpcodes()
        // Half a packet was lost; what is left begins with no known indicator.
        try controller.send("8fe25800d4043e0c0201")
        #expect(controller.takeOpcodes().first == .reset)
        #expect(controller.scanner.isScanning)
        try controller.advertise()
        #expect(controller.packets.count == 1)
        try controller.pass(.seconds(3))
        #expect(controller.scanner.counts.unknownPackets == 1)
        #expect(controller.takeStates().isEmpty, "it took no time")
    }

    @Test func aStreamOfRubbishIsGivenUpAndTriedAgain() throws {
        let controller = try ScriptedController(.stream)
        try controller.start()
        controller.isSilent = true
        try controller.send(String(repeating: "ff", count: 600))
        try controller.pass(.seconds(3))
        #expect(!controller.scanner.isScanning)
        controller.isSilent = false
        try controller.pass(.seconds(3))
        #expect(controller.scanner.isScanning)
    }
}

@Suite struct SourceSpecificationTests {
    @Test func sourcesAreNamedByOneString() throws {
        #expect(try SourceSpecification("hci:0") == .controller(.raw(.index(0))))
        #expect(try SourceSpecification("hci:00:1a:7D:DA:71:13") == .controller(.raw(.address(0x001A_7DDA_7113))))
        #expect(try SourceSpecification("user:3") == .controller(.user(.index(3))))
        #expect(try SourceSpecification("tcp:localhost:9001") == .controller(.tcp(host: "localhost", port: 9001)))
        #expect(try SourceSpecification("tcp:[::1]:9001") == .controller(.tcp(host: "::1", port: 9001)))
        #expect(try SourceSpecification("unix:/run/h4:1") == .controller(.unix(path: "/run/h4:1")))
        #expect(
            try SourceSpecification("serial:/dev/ttyS1?baud=921600&flow=hardware")
                == .controller(.serial(path: "/dev/ttyS1", rate: 921_600, hardwareFlowControl: true)))
        #expect(try SourceSpecification("btsnoop:/a/b:c.log") == .capture(path: "/a/b:c.log"))
        #expect(try SourceSpecification("simulate:home.json") == .simulation(path: "home.json"))
        #expect(try SourceSpecification("hci:1").adapterName == "hci1")
        #expect(try SourceSpecification("serial:/dev/ttyS1").adapterName == "ttyS1")
        #expect(try SourceSpecification("btsnoop:/a/walk.btsnoop").adapterName == "walk")
    }

    @Test(arguments: [
        "hci:3", "hci:00:1A:7D:DA:71:13", "user:0", "tcp:localhost:9001", "tcp:[::1]:9001", "unix:/run/h4",
        "serial:/dev/ttyUSB0?baud=115200", "serial:/dev/ttyAMA0?baud=3000000&flow=hardware", "btsnoop:a", "simulate:b",
    ])
    func descriptionsAreReadAsTheyAreWritten(text: String) throws {
        let specification = try SourceSpecification(text)
        #expect(specification.description == text)
        #expect(try SourceSpecification(specification.description) == specification)
    }

    @Test(arguments: [
        "", "hci", "hci:", "hci:x", "hci:-1", "hci:65535", "hci:00:1A:7D:DA:71", "hci:00:1A:7D:DA:71:1G", "user:",
        "tcp:9001", "tcp::9001", "tcp:a:0", "tcp:a:65536", "unix:", "serial:", "serial:?baud=9600",
        "serial:/dev/a?baud=9601", "serial:/dev/a?bits=7", "serial:/dev/a?flow=soft", "btsnoop:", "simulate:", "usb:0",
        ":",
    ])
    func otherStringsAreRefused(text: String) {
        #expect(throws: SourceSpecification.ParseError.self) { try SourceSpecification(text) }
    }
}
