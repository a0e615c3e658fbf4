// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Crypto
import Glibc
import LinuxIO

/// Who this gateway is when the configuration does not say.
enum GatewayIdentity {
    /// The address of the first Bluetooth adapter as twelve hexadecimal digits, because cloned cards differ in it; else
    /// an id made from the machine's.
    static func ofThisMachine() throws(AgentError) -> String {
        for index in 0..<4 {
            let path = "/sys/class/bluetooth/hci\(index)/address"
            guard let text = try? FileDescriptor.contents(of: path, limit: 4096) else { continue }
            let digits = text.filter { isxdigit(Int32($0)) != 0 }
            if digits.count == 12, digits.contains(where: { $0 != UInt8(ascii: "0") }) {
                return String(decoding: digits, as: UTF8.self).lowercased()
            }
        }
        guard let machine = ofMachineID() else { return try ofHost() }
        return String(machine.prefix(12))
    }

    /// An id made from the machine's, 32 hexadecimal digits; nil when it has none.
    static func ofMachineID() -> String? {
        guard let text = try? FileDescriptor.contents(of: "/etc/machine-id", limit: 4096),
            let machine = Hexadecimal.octets(String(decoding: text.prefix(32), as: UTF8.self)), machine.count == 16
        else { return nil }
        return Hexadecimal.text(derived(from: machine))
    }

    /// machine-id(5) asks not to show the id itself, but what a keyed function makes of it and a word of the
    /// application.
    private static func derived(from machine: [UInt8]) -> [UInt8] {
        var key = [16 of UInt8](repeating: 0)
        var word = [16 of UInt8](repeating: 0)
        for (index, octet) in machine.prefix(16).enumerated() { key[index] = octet }
        for (index, octet) in "beacond.gateway1".utf8.prefix(16).enumerated() { word[index] = octet }
        guard let block = AES128(key: key)?.encrypt(word) else { return machine }
        return block.indices.map { block[$0] }
    }

    private static func ofHost() throws(AgentError) -> String {
        var name = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&name, name.count - 1) == 0 else { throw .system(SystemError("gethostname", "")) }
        let text = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let valid = text.unicodeScalars.filter {
            $0.isASCII && ($0.properties.isAlphabetic || "0123456789-_".unicodeScalars.contains($0))
        }
        guard !valid.isEmpty else {
            throw .configuration(
                "this machine has neither an adapter, nor a machine id, nor a host name: give gateway.id")
        }
        return String(String.UnicodeScalarView(valid))
    }
}
