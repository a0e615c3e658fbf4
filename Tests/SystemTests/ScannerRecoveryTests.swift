// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import HCI
import Scanner
import Testing

/// The scanner against controllers that a script plays: what goes wrong, and how soon it is right again.
@Suite struct ScannerRecoveryTests {
    @Test func reportsAreHandedOutAndAHardwareErrorStartsAnew() throws {
        let controller = try ScriptedController()
        try controller.start()
        try controller.advertise()
        #expect(controller.packets == ["043e0c02010400b30b7c8fe25800d4"])
        _ = controller.takeStates()
        _ = controller.takeOpcodes()
        try controller.send("04100101")
        #expect(controller.takeStates() == [.blind, .scanning])
        #expect(controller.takeOpcodes().count == 7)
    }

    @Test func aStormOfHardwareErrorsIsNotAnsweredByAStorm() throws {
        let controller = try ScriptedController()
        try controller.start()
        _ = controller.takeOpcodes()
        for _ in 0..<100 { try controller.send("04100101") }
        try controller.pass(.seconds(2))
        #expect(controller.takeOpcodes().count { $0 == .readBDADDR } <= 3)
        try controller.pass(.seconds(600))
        #expect(controller.scanner.isScanning)
        #expect(controller.port.powerCycleCount == 0)
    }

    @Test func aSignOfLifeIsAskedForAndNotWaitedForLongerThanAnAnswer() throws {
        let controller = try ScriptedController()
        try controller.start()
        try controller.pass(.seconds(1))
        _ = controller.takeOpcodes()
        let start = controller.now
        #expect(controller.scanner.lastSign < start)
        try controller.askForSign()
        #expect(controller.takeOpcodes() == [.readLocalVersionInformation])
        #expect(controller.scanner.lastSign == start, "the answer is one")
        try controller.pass(.seconds(1))
        try controller.advertise()
        #expect(controller.scanner.lastSign == start + .seconds(1), "so is a report")

        controller.isSilent = true
        _ = controller.takeStates()
        try controller.askForSign()
        try controller.askForSign()
        #expect(controller.takeOpcodes() == [.readLocalVersionInformation], "one answer is enough")
        try controller.pass(.milliseconds(1999))
        #expect(controller.takeStates() == [])
        try controller.pass(.milliseconds(1))
        #expect(controller.takeStates() == [.blind])
        #expect(controller.scanner.lastSign == start + .seconds(1))
        #expect(controller.port.powerCycleCount == 1, "as after any other probe")
    }

    @Test func aControllerThatDoesNotAnswerIsResetWithinTenSeconds() throws {
        let controller = try ScriptedController()
        controller.isSilent = true
        try controller.start()
        try controller.pass(.seconds(1))
        #expect(controller.takeStates() == [.starting])
        try controller.pass(.seconds(1))
        #expect(
            controller.takeChanges().first
                == .state(.blind, reason: "hci7: the controller does not answer Read Local Version Information"))
        try controller.pass(.seconds(2))
        #expect(controller.port.powerCycleCount == 1)
        controller.isSilent = false
        try controller.pass(.seconds(3))
        #expect(controller.scanner.isScanning)
    }

    @Test func aDeadControllerIsResetFourTimesAnHour() throws {
        let controller = try ScriptedController()
        controller.isSilent = true
        try controller.start()
        try controller.pass(.seconds(3599))
        #expect(controller.port.powerChanges == [.downAndUp, .downAndUp, .busReset, .busReset])
        #expect(controller.takeStates().last == .failed)
        // It is asked again, ever more seldom.
        #expect(controller.takeOpcodes().count < 40)
        try controller.pass(.seconds(23 * 3600))
        #expect(controller.port.powerCycleCount <= 4 * 24)
        controller.isSilent = false
        try controller.pass(.seconds(601))
        #expect(controller.scanner.isScanning)
    }

    @Test func withoutTheMeansToResetItIsSaidAndTriedAgain() throws {
        let controller = try ScriptedController()
        controller.port.mayCyclePower = false
        controller.isSilent = true
        try controller.start()
        try controller.pass(.seconds(60))
        #expect(controller.port.openCount == 1)
        controller.isSilent = false
        try controller.pass(.seconds(120))
        #expect(controller.scanner.isScanning)
    }

    // MARK: Silence

    @Test func silenceInABusyRoomIsCuredWithinAMinute() throws {
        let controller = try ScriptedController()
        try controller.start()
        for _ in 0..<300 {
            try controller.advertise()
            try controller.pass(.milliseconds(100))
        }
        _ = controller.takeStates()
        try controller.pass(.seconds(60))
        #expect(controller.scanner.counts.restarts == 1)
        #expect(controller.port.powerCycleCount == 1)
        #expect(controller.scanner.isScanning)
    }

    @Test func silenceInAQuietRoomIsNoFault() throws {
        let controller = try ScriptedController()
        try controller.start()
        _ = controller.takeStates()
        try controller.pass(.seconds(86_400))
        #expect(controller.port.powerCycleCount == 0)
        #expect(controller.scanner.counts.restarts <= 24 * 6)
        #expect(controller.takeStates().isEmpty)
    }

    @Test func aProbeThatIsNotAnsweredLeadsToAResetAtOnce() throws {
        let controller = try ScriptedController()
        try controller.start()
        for _ in 0..<10 {
            try controller.advertise()
            try controller.pass(.seconds(1))
        }
        controller.isSilent = true
        try controller.pass(.seconds(13))
        #expect(controller.port.powerCycleCount == 1)
    }

    @Test(arguments: [PacketChannel.Kind.shared, .stream])
    func extendedScanningThatIsOnlyClaimedFallsBackToLegacyOnce(kind: PacketChannel.Kind) throws {
        let controller = try ScriptedController(kind)
        controller.hasExtended = true
        try controller.start()
        _ = controller.takeOpcodes()
        try controller.pass(.seconds(32))
        #expect(controller.takeOpcodes().suffix(3) == [.leSetScanEnable, .leSetScanParameters, .leSetScanEnable])
        try controller.advertise()
        // It is a fact from now on.
        try controller.send("04100101")
        #expect(controller.takeOpcodes().last == .leSetScanEnable)
        #expect(controller.scanner.counts.resets == 1)
    }

    @Test func whenLegacyHearsNothingEitherExtendedIsUsedAgain() throws {
        let controller = try ScriptedController()
        controller.hasExtended = true
        try controller.start()
        try controller.pass(.seconds(86_400))
        #expect(controller.port.powerCycleCount == 2, "there and back, and never again")
        let commands = controller.takeOpcodes().filter { $0 != .readLocalVersionInformation }
        #expect(commands.last == .leSetExtendedScanEnable)
    }

    @Test func withoutAPowerCycleASharedControllerKeepsItsCommands() throws {
        let controller = try ScriptedController()
        controller.hasExtended = true
        controller.port.mayCyclePower = false
        try controller.start()
        try controller.pass(.seconds(86_400))
        let isLegacy = controller.takeOpcodes().contains(.leSetScanEnable)
        #expect(!isLegacy)
        #expect(controller.scanner.isScanning)
    }

    // MARK: Other hosts

    @Test(arguments: [
        // Scan disable; filter for duplicates on; other parameters; a reset.
        "010c20020000", "010c20020101", "010b200701100010000000", "01030c00",
    ])
    func whatAnotherHostUndoesIsDoneAgainWithinASecond(command: String) throws {
        let controller = try ScriptedController()
        try controller.start()
        _ = controller.takeStates()
        _ = controller.takeOpcodes()
        try controller.send(command)
        try controller.pass(.seconds(1))
        #expect(controller.takeOpcodes() == [.leSetScanEnable, .leSetScanParameters, .leSetScanEnable])
        #expect(controller.scanner.counts.stolenScans == 1)
        #expect(controller.takeStates().isEmpty)
    }

    @Test(arguments: ["010c20020100", "010b200700300030000000", "01011000", "010520060000000000aa", "01", "010c20ff00"])
    func whatDoesNoHarmIsLeftAlone(command: String) throws {
        let controller = try ScriptedController()
        try controller.start()
        _ = controller.takeOpcodes()
        try controller.send(command)
        try controller.pass(.seconds(5))
        #expect(controller.takeOpcodes().isEmpty)
    }

    @Test func aTugOfWarIsFoughtOnceASecond() throws {
        let controller = try ScriptedController()
        try controller.start()
        _ = controller.takeOpcodes()
        for _ in 0..<100 {
            try controller.send("010c20020000")
            try controller.pass(.milliseconds(100))
        }
        let fights = controller.takeOpcodes().count { $0 == .leSetScanParameters }
        #expect((9...11).contains(fights), "\(fights) in 10 s")
    }

    @Test func aScanThatAnotherHostTurnedOffIsNotTurnedOffAtTheEnd() throws {
        let controller = try ScriptedController()
        try controller.start()
        try controller.send("010c20020000")
        _ = controller.takeOpcodes()
        controller.scanner.stop()
        try controller.settle()
        #expect(controller.takeOpcodes().isEmpty)
    }

    // MARK: There and gone

    @Test(arguments: [PacketChannel.Kind.shared, .exclusive, .stream])
    func anAdapterThatIsPulledOutIsFoundAgain(kind: PacketChannel.Kind) throws {
        let controller = try ScriptedController(kind)
        try controller.start()
        _ = controller.takeStates()
        controller.port.isMissing = true
        controller.port.pullOut()
        try controller.settle()
        #expect(controller.takeStates() == [.absent])
        try controller.pass(.seconds(3600))
        // One line in the log for the loss, one for what it waits for.
        #expect(controller.takeStates().count <= 1)
        controller.port.isMissing = false
        try controller.pass(.seconds(5))
        #expect(controller.takeStates() == [.scanning])
    }

    @Test func anAdapterThatComesLateIsWaitedFor() throws {
        let port = ScriptedPort(.shared)
        port.isMissing = true
        let scanner = try AdapterScanner(port, parameters: nil)
        var states: [Event.AdapterState] = []
        scanner.start(at: .zero) { if case .state(let state, _) = $0 { states.append(state) } }
        #expect(states == [.starting, .absent])
        #expect(scanner.deadline == .zero + .seconds(1))
    }

    @Test func anAdapterThatIsSwitchedOffIsSwitchedOnAgain() throws {
        let controller = try ScriptedController()
        controller.port.isUp = true
        try controller.start()
        _ = controller.takeStates()
        controller.port.isUp = false
        controller.port.powerCycleDelay = 5
        try controller.pass(.seconds(2))
        #expect(controller.takeStates() == [.blind])
        try controller.pass(.seconds(3))
        #expect(controller.takeStates() == [.scanning])
        #expect(controller.port.powerCycleCount == 1)
    }

    /// While its radio switch is off nothing can be done but to look, which costs little.
    @Test(arguments: [
        (AdapterDescription.Switch.soft, "hci7: the radio is switched off by software, as in airplane mode; rfkill"),
        (.hard, "hci7: the radio is switched off by a switch or a key"),
    ])
    func aRadioThatIsBlockedIsToldAndLookedAfter(radioSwitch: AdapterDescription.Switch, reason: String) throws {
        let controller = try ScriptedController()
        controller.port.isUp = true
        try controller.start()
        _ = controller.takeChanges()
        controller.port.isUp = false
        controller.port.radioSwitch = radioSwitch
        try controller.pass(.seconds(2))
        guard case .state(.blind, let told?) = controller.takeChanges().last else {
            Issue.record("it is not told")
            return
        }
        #expect(told.hasPrefix(reason), "\(told)")
        try controller.pass(.seconds(600))
        #expect(controller.takeChanges().isEmpty, "once is enough")
        #expect(controller.port.powerCycleCount == 0)
        controller.port.radioSwitch = .open
        try controller.pass(.seconds(5))
        #expect(controller.takeStates() == [.scanning])
        #expect(controller.port.powerCycleCount == 1)
    }

    @Test func afterASuspensionTheScanIsSetAgain() throws {
        let controller = try ScriptedController()
        controller.port.suspendedTime = .seconds(7200)
        try controller.start()
        try controller.pass(.seconds(60))
        #expect(controller.scanner.counts.suspensions == 0, "that was before")
        _ = controller.takeChanges()
        _ = controller.takeOpcodes()
        controller.port.suspendedTime = .seconds(7230)
        try controller.pass(.seconds(2))
        #expect(controller.scanner.counts.suspensions == 1)
        #expect(
            controller.takeChanges() == [
                .state(.blind, reason: "hci7: the machine was suspended"),
                .activity(ScriptedController.parameters(window: 30, interval: 30)), .state(.scanning, reason: nil),
            ])
        #expect(controller.takeOpcodes().suffix(3) == [.leSetScanEnable, .leSetScanParameters, .leSetScanEnable])
        try controller.pass(.seconds(8))
        #expect(controller.scanner.counts.suspensions == 1)
    }

    // MARK: Demand

    @Test func parametersChangeWithoutBlindness() throws {
        let controller = try ScriptedController()
        try controller.start()
        _ = controller.takeChanges()
        _ = controller.takeCommands()
        let slow = ScriptedController.parameters(window: 10, interval: 100)
        try controller.use(slow)
        #expect(controller.takeCommands() == ["0c20020000", "0b200700a00010000000", "0c20020100"])
        #expect(controller.takeChanges() == [.activity(slow)])
        try controller.use(slow)
        #expect(controller.takeCommands().isEmpty)
        try controller.use(nil)
        #expect(controller.takeCommands() == ["0c20020000"])
        #expect(controller.takeChanges() == [.activity(nil)])
        try controller.pass(.seconds(3600))
        #expect(controller.takeCommands().isEmpty, "a radio that nobody wants is left alone")
        controller.scanner.stop()
        try controller.settle()
        #expect(controller.takeCommands().isEmpty)
        try controller.use(slow)
        #expect(controller.takeChanges() == [.activity(slow)])
    }

    @Test func aChangeDuringAnotherIsTheOneThatHolds() throws {
        let controller = try ScriptedController()
        controller.unanswered = [.leSetScanParameters]
        try controller.start()
        _ = controller.takeCommands()
        let slow = ScriptedController.parameters(window: 10, interval: 100)
        try controller.use(slow)
        #expect(controller.takeCommands().isEmpty)
        controller.unanswered = []
        try controller.send("040e04010b2000")
        #expect(controller.takeCommands() == ["0c20020000", "0b200700a00010000000", "0c20020100"])
        #expect(controller.takeChanges().contains(.activity(slow)))
    }

    @Test func silenceIsCountedOverTheBurstsOfASchedule() throws {
        let controller = try ScriptedController()
        try controller.start()
        let parameters = ScriptedController.parameters(window: 30, interval: 30)
        _ = controller.takeStates()
        for _ in 0..<12 {
            try controller.pass(.seconds(10))
            try controller.use(nil)
            try controller.pass(.seconds(50))
            try controller.use(parameters)
        }
        #expect(controller.scanner.counts.restarts >= 1)
        #expect(controller.takeStates().isEmpty)
    }
}
