// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import LinuxIO

/// What is found out about one thing on which scanning depends.
public struct Finding: Equatable, Sendable {
    public enum Grade: String, Sendable {
        /// As it should be.
        case ok
        /// Worth knowing; scanning works all the same.
        case note
        /// Scanning does not work because of it.
        case problem
    }

    public var grade: Grade
    /// One or two words: `kernel`, `adapter`, `permission`.
    public var subject: String
    /// What was found.
    public var text: String
    /// What to do about it; nil when there is nothing to do.
    public var cure: String?

    public init(_ grade: Grade, _ subject: String, _ text: String, cure: String? = nil) {
        self.grade = grade
        self.subject = subject
        self.text = text
        self.cure = cure
    }
}

/// Looks at what scanning with the kernel's Bluetooth needs on this machine.
public struct Doctor {
    /// Where the kernel shows devices and processes; others in tests.
    public var systemFolder = "/sys"
    public var processFolder = "/proc"
    /// The adapters of the machine.
    public var list: AdapterList
    /// Whether a process of beacond scans with an adapter; that scan is then not looked at.
    public var isInUse: (AdapterDescription) -> Bool = { _ in false }

    public init(systemFolder: String = "/sys", processFolder: String = "/proc") {
        self.systemFolder = systemFolder
        self.processFolder = processFolder
        list = AdapterList(systemFolder: systemFolder)
    }

    /// Kernel, switches, permission, adapters and other programs, in the order in which they must be right.
    public func examine() -> [Finding] {
        var findings = [kernel(release: Self.kernelRelease)]
        if let failure = list.failure, failure.isMissing {
            findings.append(
                Finding(
                    .problem, "bluetooth", failure.description,
                    cure:
                        "load the module (modprobe bluetooth), or boot a kernel that has it: the kernels of containers "
                        + "and small virtual machines often do not"))
            return findings
        }
        findings.append(Finding(.ok, "bluetooth", "the kernel has it"))
        findings += switches()
        let permission = permission()
        findings.append(permission)
        if list.adapters.isEmpty {
            findings.append(
                Finding(
                    .problem, "adapter", "none is there",
                    cure: "plug one in; in a virtual machine hand it through; \"dmesg | grep -i bluetooth\" tells of "
                        + "firmware that is missing"))
        }
        for adapter in list.adapters { findings += examine(adapter, mayOpen: permission.grade == .ok) }
        findings.append(bluetoothd())
        return findings
    }

    /// The release as uname(2) tells it.
    static var kernelRelease: String {
        var name = utsname()
        guard unsafe uname(&name) == 0 else { return "" }
        return unsafe withUnsafeBytes(of: &name.release) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    /// 4.19 is the oldest series that was still looked after when this was written.
    func kernel(release: String) -> Finding {
        let numbers = release.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        guard numbers.count == 2, numbers[0] * 1000 + numbers[1] < 4019 else {
            return Finding(.ok, "kernel", "Linux \(release)")
        }
        return Finding(
            .note, "kernel", "Linux \(release) is older than 4.19 and no longer maintained",
            cure: "if the radio misbehaves, try a newer kernel first")
    }

    /// Switches that block; one of them may stand for all adapters.
    func switches() -> [Finding] {
        RadioSwitches(systemFolder: systemFolder).blocked.map { name, state in
            state == .hard
                ? Finding(
                    .problem, "rfkill", "\(name) is blocked by a switch or a key of the machine (hard)",
                    cure: "turn the radio on with that switch, or in the firmware's settings")
                : Finding(
                    .problem, "rfkill", "\(name) is blocked by software, as in airplane mode (soft)",
                    cure: "rfkill unblock bluetooth")
        }
    }

    /// Whether this process may open HCI sockets: capability 13 (capabilities(7)) in its effective set.
    func permission() -> Finding {
        let lines = (Folder.text(of: "\(processFolder)/self/status") ?? "").split(separator: "\n")
        let word = lines.first { $0.hasPrefix("CapEff:") }?.split(whereSeparator: \.isWhitespace).last
        guard let word, let set = UInt64(word, radix: 16) else {
            return Finding(.note, "permission", "the capabilities of this process are not known")
        }
        guard set & 1 << 13 == 0 else { return Finding(.ok, "permission", "this process has CAP_NET_RAW") }
        return Finding(
            .problem, "permission", "this process lacks the capability CAP_NET_RAW",
            cure: "run it with sudo, as the service, or once: sudo setcap cap_net_raw+ep $(command -v beacond)")
    }

    private func examine(_ adapter: AdapterDescription, mayOpen: Bool) -> [Finding] {
        var findings: [Finding] = []
        let name = adapter.name
        if adapter.hasLowEnergy == false {
            findings.append(
                Finding(
                    .problem, name, "it knows no Bluetooth Low Energy (it is older than version 4.0)",
                    cure: "use a newer adapter"))
        }
        guard adapter.isUp != false else {
            findings.append(
                Finding(
                    .problem, name, "it is down",
                    cure: "bluetoothctl power on, or without bluetoothd: hciconfig \(name) up"))
            return findings
        }
        if isInUse(adapter) {
            findings.append(Finding(.ok, name, "it is up, and beacond scans with it"))
            return findings
        }
        guard mayOpen else {
            findings.append(Finding(.note, name, "it is \(adapter.isUp == true ? "up" : "there"); not opened"))
            return findings
        }
        do throws(PortError) {
            findings += Self.findings(AdapterProbe(try AdapterSocket(index: adapter.index)), name)
        } catch {
            findings.append(Finding(.problem, name, error.description))
        }
        return findings
    }

    /// What a probe says of an adapter.
    static func findings(_ probe: AdapterProbe, _ name: String) -> [Finding] {
        if let failure = probe.failure {
            return [Finding(.problem, name, failure, cure: "bluetoothctl power off, then power on; else replug it")]
        }
        guard probe.answers else {
            return [
                Finding(
                    .problem, name, "the controller does not answer",
                    cure:
                        "bluetoothctl power off, then power on; if that does not help, unplug it or turn the machine off "
                        + "and on: some controllers need to lose their power")
            ]
        }
        var findings = [Finding(.ok, name, "it is up and its controller answers")]
        if probe.reportCount > 0 {
            findings.append(
                Finding(
                    .note, name, "another program scans with it (\(probe.reportCount) reports in a second)",
                    cure: "beacond works beside it, but that program decides how much is heard; end it for a scan "
                        + "without gaps (bluetoothctl scan off)"))
        }
        return findings
    }

    /// Whether BlueZ's daemon runs.
    func bluetoothd() -> Finding {
        guard let process = Self.process(named: "bluetoothd", in: processFolder) else {
            return Finding(.ok, "bluetoothd", "it does not run, and beacond does not need it")
        }
        return Finding(
            .ok, "bluetoothd", "it runs (process \(process)); beacond scans beside it on the raw channel")
    }

    /// The process of a program; nil when it does not run, or /proc hides it.
    public static func process(named name: String, in folder: String = "/proc") -> Int32? {
        for entry in Folder.names(in: folder) {
            guard let number = Int32(entry) else { continue }
            if Folder.text(of: "\(folder)/\(entry)/comm") == name { return number }
        }
        return nil
    }
}
