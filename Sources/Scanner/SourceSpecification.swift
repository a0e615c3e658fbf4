// SPDX-License-Identifier: Apache-2.0

/// The one string that names a source of HCI packets, in the configuration, on the command line and in tests.
public enum SourceSpecification: Equatable, Sendable, CustomStringConvertible {
    /// `hci:0`: the raw channel of the adapter with this index, beside bluetoothd.
    case adapter(index: UInt16)
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
        case "hci":
            guard let index = UInt16(rest), index < 0xFFFF else {
                throw ParseError(description: "\"\(text)\": expected the index of an adapter, as in hci:0")
            }
            self = .adapter(index: index)
        case "btsnoop", "simulate":
            guard !rest.isEmpty else {
                throw ParseError(description: "\"\(text)\": expected the path of a file behind the colon")
            }
            self = scheme == "btsnoop" ? .capture(path: rest) : .simulation(path: rest)
        default:
            throw ParseError(description: "\"\(scheme):\" is no kind of source; expected \(Self.forms)")
        }
    }

    private static let forms = "hci:INDEX, btsnoop:FILE or simulate:FILE"

    public var description: String {
        switch self {
        case .adapter(let index): "hci:\(index)"
        case .capture(let path): "btsnoop:\(path)"
        case .simulation(let path): "simulate:\(path)"
        }
    }

    /// The name that events show for it: `hci0`, or the file's name without folder and ending.
    public var adapterName: String {
        switch self {
        case .adapter(let index): "hci\(index)"
        case .capture(let path), .simulation(let path):
            path.split(separator: "/").last.map { file in
                String(file.split(separator: ".", maxSplits: 1).first ?? file)
            } ?? path
        }
    }
}
