// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Foundation
import Glibc
import LinuxIO
import TestSupport
import Testing

@testable import Scanner

/// What is found out about adapters, on machines made of files.
@Suite struct DoctorTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func write(_ path: String, _ text: String) throws {
        let file = folder.url.appending(path: path)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }

    private func addSwitch(_ number: Int, _ name: String, type: String = "bluetooth", soft: Int, hard: Int) throws {
        for (file, text) in [("name", name), ("type", type), ("soft", "\(soft)"), ("hard", "\(hard)")] {
            try write("class/rfkill/rfkill\(number)/\(file)", text + "\n")
        }
    }

    private var doctor: Doctor { Doctor(systemFolder: folder.path, processFolder: folder.path("proc")) }

    @Test func adaptersAreFoundWithBusAndSwitch() throws {
        try write("class/bluetooth/hci1/address", "00:00:00:00:00:00\n")
        try write("class/bluetooth/hci0/address", "b8:27:eb:01:02:03\n")
        try write("class/bluetooth/hci0:12/address", "00:00:00:00:00:00\n")
        try write("bus/usb/x", "")
        try write("class/bluetooth/hci1/device/x", "")
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("class/bluetooth/hci1/device/subsystem"),
            withDestinationPath: "../../../../bus/usb")
        try addSwitch(0, "hci0", soft: 0, hard: 0)
        try addSwitch(1, "hci1", soft: 1, hard: 0)
        try addSwitch(2, "phy0", type: "wlan", soft: 1, hard: 1)
        let asked = [AdapterDescription(index: 1, isUp: false, bus: "virtual", hasLowEnergy: true)]
        #expect(
            AdapterList.complete(asked, folder.path) == [
                AdapterDescription(
                    index: 0, address: DeviceAddress(value: 0xB827_EB01_0203, kind: .publicDevice), radioSwitch: .open),
                AdapterDescription(index: 1, isUp: false, bus: "usb", radioSwitch: .soft, hasLowEnergy: true),
            ])
    }

    @Test func theFileOfAnAdapterOnUSBIsFound() throws {
        try write("devices/usb1/1-4/busnum", "1\n")
        try write("devices/usb1/1-4/devnum", "12\n")
        try write("devices/usb1/1-4/1-4:1.0/x", "")
        try write("devices/serial0/x", "")
        for (adapter, device) in [("hci0", "usb1/1-4/1-4:1.0"), ("hci1", "serial0")] {
            try write("class/bluetooth/\(adapter)/address", "")
            try FileManager.default.createSymbolicLink(
                atPath: folder.path("class/bluetooth/\(adapter)/device"),
                withDestinationPath: "../../../devices/\(device)")
        }
        #expect(USBDevice.path(ofAdapter: 0, systemFolder: folder.path) == "/dev/bus/usb/001/012")
        #expect(USBDevice.path(ofAdapter: 1, systemFolder: folder.path) == nil)
        #expect(USBDevice.path(ofAdapter: 2, systemFolder: folder.path) == nil)
    }

    @Test func blockedRadiosAreTold() throws {
        try addSwitch(0, "tpacpi_bluetooth_sw", soft: 0, hard: 1)
        try addSwitch(1, "hci0", soft: 1, hard: 0)
        try addSwitch(2, "hci1", soft: 0, hard: 0)
        try addSwitch(3, "phy0", type: "wlan", soft: 1, hard: 1)
        let findings = doctor.switches()
        #expect(findings.map(\.grade) == [.problem, .problem])
        #expect(findings[0].text.hasPrefix("hci0 is blocked by software"))
        #expect(findings[0].cure == "rfkill unblock bluetooth")
        #expect(findings[1].text.hasPrefix("tpacpi_bluetooth_sw is blocked by a switch"))
    }

    @Test(arguments: [
        ("0000000000002000", Finding.Grade.ok), ("000001ffffffffff", .ok), ("0000000000001fff", .problem),
        ("0000000000000000", .problem), ("nonsense", .note), ("", .note),
    ])
    func theCapabilityIsRead(set: String, grade: Finding.Grade) throws {
        try write("proc/self/status", "Name:\tbeacond\nCapInh:\t0000000000002000\nCapEff:\t\(set)\nSeccomp:\t0\n")
        #expect(doctor.permission().grade == grade)
    }

    @Test(arguments: [
        ("6.1.0-57-amd64", Finding.Grade.ok), ("4.19.0", .ok), ("4.18.20", .note), ("3.10.0-1160.el7", .note),
        ("10.0", .ok), ("", .ok), ("strange", .ok),
    ])
    func anOldKernelIsNoted(release: String, grade: Finding.Grade) {
        #expect(doctor.kernel(release: release).grade == grade)
    }

    @Test func aDaemonOfBlueZIsFound() throws {
        try write("proc/17/comm", "bluetoothd\n")
        try write("proc/18/comm", "bash\n")
        try write("proc/uptime", "1 1")
        #expect(Doctor.process(named: "bluetoothd", in: folder.path("proc")) == 17)
        #expect(Doctor.process(named: "blue", in: folder.path("proc")) == nil)
        #expect(doctor.bluetoothd().text.contains("process 17"))
    }

    // MARK: The probe

    private func probe(
        _ answers: [String], patience: BeaconModel.TimeInterval = .milliseconds(300)
    ) throws -> AdapterProbe {
        var pair: [Int32] = [0, 0]
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        try #require(unsafe socketpair(AF_UNIX, type, 0, &pair) == 0)
        let script = FileDescriptor(owning: pair[1])
        for answer in answers { _ = try script.write(try #require(Hexadecimal.octets(answer))) }
        let probe = AdapterProbe(
            AdapterSocket(controller: FileDescriptor(owning: pair[0])), listening: .milliseconds(100),
            patience: patience)
        var buffer = [UInt8](repeating: 0, count: 300)
        #expect(try script.read(into: &buffer).map { Hexadecimal.text(buffer[..<$0]) } == "01011000")
        return probe
    }

    @Test func aHungControllerIsTold() throws {
        let probe = try probe([])
        #expect(!probe.answers)
        let finding = try #require(Doctor.findings(probe, "hci0").first)
        #expect(finding.grade == .problem && finding.text == "the controller does not answer")
    }

    @Test func aControllerThatIsWellIsTold() throws {
        let probe = try probe(["040e0c0101100009000009000f000000"])
        #expect(probe.answers && probe.failure == nil && probe.reportCount == 0)
        #expect(Doctor.findings(probe, "hci0").map(\.grade) == [.ok])
    }

    @Test func aScanOfSomebodyElseIsNoticed() throws {
        let report = "043e0c02010400b30b7c8fe25800d4"
        let probe = try probe([report, "040e0c0101100009000009000f000000", report, "043e0101"])
        #expect(probe.answers && probe.reportCount == 2)
        let findings = Doctor.findings(probe, "hci0")
        #expect(findings.map(\.grade) == [.ok, .note])
        #expect(findings[1].text.contains("another program scans"))
    }

    @Test func aControllerThatIsGoneIsTold() throws {
        var pair: [Int32] = [0, 0]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &pair) == 0)
        signal(SIGPIPE, SIG_IGN)
        close(pair[1])
        let probe = AdapterProbe(AdapterSocket(controller: FileDescriptor(owning: pair[0])))
        #expect(probe.failure != nil)
        #expect(Doctor.findings(probe, "hci0").map(\.grade) == [.problem])
    }
}
