// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Scanner

/// `beacond adapters`: the Bluetooth adapters of this machine.
enum AdaptersCommand {
    static let command = Command(
        name: "adapters", operands: "", operandCount: 0...0,
        summary: "Lists the Bluetooth adapters of this machine and who uses them.",
        options: [Option("--json", nil, "one JSON object for each adapter, on a line")],
        details: """
            Nothing is opened and no privilege is needed. Address and abilities are known once the
            adapter has been up. Exit status 69 when there is no adapter.
            """,
        run: run)

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let list = AdapterList()
        guard !list.adapters.isEmpty else {
            let reason = list.failure.map { $0.description } ?? "no adapter is there"
            throw CommandError(.noRadio, "\(reason); \"beacond doctor\" says what can be done")
        }
        let bluetoothd = Doctor.process(named: "bluetoothd")
        var output = StandardOutput()
        if !arguments.has("--json") { try StandardOutput.print(head) }
        for adapter in list.adapters {
            let holders = AdapterLock.Use.allCases.compactMap { AdapterLocks.holder(of: adapter, for: $0) }
            if arguments.has("--json") {
                write(adapter, holders, bluetoothd, &output.writer)
                try output.endLine()
            } else {
                try StandardOutput.print(line(adapter, holders, bluetoothd))
            }
        }
        try output.flush()
        return .success
    }

    private static let widths = [8, 18, 6, 8, 8, 4]
    private static let head = columns(["SOURCE", "ADDRESS", "STATE", "BUS", "RFKILL", "LE"]) + "USED BY\n"

    private static func columns(_ cells: [String]) -> String {
        zip(cells, widths).map { TerminalText.column($0, $1) + "  " }.joined()
    }

    private static func line(
        _ adapter: AdapterDescription, _ holders: [AdapterLock.Held], _ bluetoothd: Int32?
    ) -> String {
        var users = holders.map { "beacond \($0.use)\($0.process.map { " (\($0))" } ?? "")" }
        if let bluetoothd { users.append("bluetoothd (\(bluetoothd))") }
        func known(_ value: Bool?, _ yes: String, _ no: String) -> String { value.map { $0 ? yes : no } ?? "?" }
        let cells = columns([
            "hci:\(adapter.index)", adapter.address.map(text) ?? "?", known(adapter.isUp, "up", "down"),
            adapter.bus ?? "?", adapter.radioSwitch.map { $0 == .open ? "open" : "\($0.rawValue)" } ?? "-",
            known(adapter.hasLowEnergy, "yes", "no"),
        ])
        return cells + (users.isEmpty ? "nobody" : users.joined(separator: ", ")) + "\n"
    }

    private static func text(_ address: DeviceAddress) -> String {
        var writer = JSONWriter()
        writer.address(address)
        return String(writer.text.dropFirst().dropLast())
    }

    private static func write(
        _ adapter: AdapterDescription, _ holders: [AdapterLock.Held], _ bluetoothd: Int32?, _ writer: inout JSONWriter
    ) {
        func optional(_ key: String, _ value: Bool?) {
            writer.key(key)
            if let value { writer.boolean(value) } else { writer.null() }
        }
        func optional(_ key: String, _ value: Int32?) {
            writer.key(key)
            if let value { writer.integer(value) } else { writer.null() }
        }
        func optional(_ key: String, _ value: String?) {
            writer.key(key)
            if let value { writer.string(value) } else { writer.null() }
        }
        writer.beginObject()
        optional("source", "hci:\(adapter.index)")
        writer.key("address")
        if let address = adapter.address { writer.address(address) } else { writer.null() }
        optional("up", adapter.isUp)
        optional("bus", adapter.bus)
        optional("rfkill", adapter.radioSwitch?.rawValue)
        optional("low_energy", adapter.hasLowEnergy)
        for use in AdapterLock.Use.allCases {
            let holder = holders.first { $0.use == use }
            optional(use.rawValue, holder != nil)
            optional("\(use)_process", holder?.process)
        }
        optional("bluetoothd", bluetoothd)
        writer.endObject()
    }
}
