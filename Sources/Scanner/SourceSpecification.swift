// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import LinuxIO

/// The one string that names a source of HCI packets, in the configuration, on the command line and in tests.
public enum SourceSpecification: Equatable, Sendable, CustomStringConvertible {
    /// A controller: `hci:0`, `user:0`, `tcp:HOST:PORT`, `unix:PATH`, `serial:PATH?baud=RATE&flow=hardware`.
    case controller(ControllerSpecification)
    /// `btsnoop:FILE`: a capture, with the capture's own clock.
    case capture(path: String)
    /// `simulate:FILE`: a scenario of beacons that come, move and go.
    case simulation(path: String)

    /// Why a text names no source.
    public struct ParseError: Error, CustomStringConvertible {
        public var description: String
    }

    public init(_ text: String) throws(ParseError) {
        guard let colon = text.firstIndex(of: ":") else {
            throw ParseError(description: "\"\(text)\" names no source; expected \(Self.forms)")
        }
        let scheme = text[..<colon]
        let rest = String(text[text.index(after: colon)...])
        switch scheme {
        case "hci", "user", "tcp", "unix", "serial":
            self = .controller(try ControllerSpecification(scheme: scheme, rest))
        case "btsnoop", "simulate":
            guard !rest.isEmpty else {
                throw ParseError(description: "\"\(text)\": expected the path of a file behind the colon")
            }
            self = scheme == "btsnoop" ? .capture(path: rest) : .simulation(path: rest)
        default:
            throw ParseError(description: "\"\(scheme):\" is no kind of source; expected \(Self.forms)")
        }
    }

    private static let forms =
        "hci:INDEX, hci:ADDRESS, user:INDEX, tcp:HOST:PORT, unix:PATH, serial:PATH, btsnoop:FILE or simulate:FILE"

    public var description: String {
        switch self {
        case .controller(let controller): controller.description
        case .capture(let path): "btsnoop:\(path)"
        case .simulation(let path): "simulate:\(path)"
        }
    }

    /// The name that events show for it: `hci0`, or the file's name without folder and ending.
    public var adapterName: String {
        switch self {
        case .controller(let controller): controller.name
        case .capture(let path), .simulation(let path):
            path.split(separator: "/").last.map { file in
                String(file.split(separator: ".", maxSplits: 1).first ?? file)
            } ?? path
        }
    }
}

/// The name of a controller: where it is and by which channel it is driven.
public enum ControllerSpecification: Equatable, Sendable, CustomStringConvertible {
    /// Which of the machine's adapters.
    public enum Adapter: Equatable, Sendable, CustomStringConvertible {
        case index(UInt16)
        /// BD_ADDR; it stays the same when the adapters are renumbered.
        case address(UInt64)

        public var description: String {
            switch self {
            case .index(let index): "\(index)"
            case .address(let value): addressText(value)
            }
        }
    }

    /// The raw channel of an adapter, beside the kernel and bluetoothd.
    case raw(Adapter)
    /// The user channel of an adapter: exclusive.
    case user(Adapter)
    case tcp(host: String, port: UInt16)
    case unix(path: String)
    case serial(path: String, rate: UInt32, hardwareFlowControl: Bool)

    /// What most controllers on a line come up with.
    private static let defaultRate: UInt32 = 115_200

    init(scheme: Substring, _ rest: String) throws(SourceSpecification.ParseError) {
        func refuse(_ expected: String) -> SourceSpecification.ParseError {
            .init(description: "\"\(scheme):\(rest)\": expected \(expected)")
        }
        switch scheme {
        case "hci", "user":
            guard let adapter = Adapter(rest) else {
                throw refuse(
                    "the index or the address of an adapter, as in \(scheme):0 or \(scheme):00:1A:7D:DA:71:13")
            }
            self = scheme == "hci" ? .raw(adapter) : .user(adapter)
        case "tcp":
            // An IPv6 address holds colons, so the last one is the port's.
            guard let colon = rest.lastIndex(of: ":"), let port = UInt16(rest[rest.index(after: colon)...]), port > 0,
                colon > rest.startIndex
            else { throw refuse("a host and a port, as in tcp:localhost:9001") }
            var host = rest[..<colon]
            if host.first == "[", host.last == "]" { host = host.dropFirst().dropLast() }
            self = .tcp(host: String(host), port: port)
        case "unix":
            guard !rest.isEmpty else { throw refuse("the path of a socket behind the colon") }
            self = .unix(path: rest)
        default:
            let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            guard let path = parts.first, !path.isEmpty else { throw refuse("the path of a serial line") }
            var rate = Self.defaultRate
            var hasFlowControl = false
            for option in parts.dropFirst().joined().split(separator: "&") {
                let pair = option.split(separator: "=", maxSplits: 1)
                switch (pair.first, pair.dropFirst().first) {
                case ("baud", let value?):
                    guard let number = UInt32(value), FileDescriptor.serialRates.contains(number) else {
                        throw refuse(
                            "a rate among \(FileDescriptor.serialRates.map(String.init).joined(separator: ", "))")
                    }
                    rate = number
                case ("flow", "hardware"): hasFlowControl = true
                case ("flow", "none"): hasFlowControl = false
                default: throw refuse("baud=RATE, flow=hardware or flow=none behind the question mark")
                }
            }
            self = .serial(path: String(path), rate: rate, hardwareFlowControl: hasFlowControl)
        }
    }

    public var description: String {
        switch self {
        case .raw(let adapter): "hci:\(adapter)"
        case .user(let adapter): "user:\(adapter)"
        case .tcp(let host, let port): host.contains(":") ? "tcp:[\(host)]:\(port)" : "tcp:\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        case .serial(let path, let rate, let flow): "serial:\(path)?baud=\(rate)\(flow ? "&flow=hardware" : "")"
        }
    }

    /// What tells it from others: its name, and for an adapter that is named by its index the address, if it is there
    /// and the kernel tells it; for a socket or a serial line its whole path, without symbolic links.
    public var identities: [String] {
        switch self {
        case .unix(let path), .serial(let path, _, _): return [Folder.resolved(path)]
        case .raw(.index(let index)), .user(.index(let index)):
            let address = LocalAdapter.state(of: index)?.address ?? 0
            return address == 0 ? [name] : [name, addressText(address)]
        default: return [name]
        }
    }

    /// The name that events show for it.
    public var name: String {
        switch self {
        case .raw(.index(let index)), .user(.index(let index)): "hci\(index)"
        case .raw(.address(let value)), .user(.address(let value)):
            addressText(value)
        case .tcp(let host, let port): "\(host):\(port)"
        case .unix(let path), .serial(let path, _, _): path.split(separator: "/").last.map(String.init) ?? path
        }
    }
}

extension ControllerSpecification.Adapter {
    fileprivate init?(_ text: String) {
        if let index = UInt16(text), index < 0xFFFF {
            self = .index(index)
            return
        }
        guard let address = DeviceAddress(text: text, kind: .publicDevice) else { return nil }
        self = .address(address.value)
    }
}

/// Six octets as people write them: `AA:BB:CC:DD:EE:FF`.
func addressText(_ value: UInt64) -> String {
    (0..<6).reversed().map { index in
        let octet = String(UInt8(truncatingIfNeeded: value >> (UInt64(index) * 8)), radix: 16, uppercase: true)
        return octet.count == 1 ? "0\(octet)" : octet
    }.joined(separator: ":")
}
