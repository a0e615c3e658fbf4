// SPDX-License-Identifier: Apache-2.0

/// Lays JSON out for people.
public enum JSONLayout {
    /// A list without containers in it stays on its line up to this many bytes.
    private static let longestLine = 100

    /// The same document with two spaces a level and a newline at the end.
    ///
    /// - Parameter json: a valid document, without white space between its tokens as ``JSONWriter`` writes it.
    public static func indent(_ json: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        var level = 0
        var position = 0
        func breakLine() {
            output.append(UInt8(ascii: "\n"))
            output.append(contentsOf: repeatElement(UInt8(ascii: " "), count: level * 2))
        }
        while position < json.count {
            let character = json[position]
            switch character {
            case UInt8(ascii: "\""):
                let end = endOfString(json, from: position)
                output.append(contentsOf: json[position..<end])
                position = end
                continue
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                if let end = endOfShortContainer(json, from: position) {
                    appendOneLine(json[position..<end], to: &output)
                    position = end
                    continue
                }
                output.append(character)
                level += 1
                breakLine()
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                level = max(0, level - 1)
                breakLine()
                output.append(character)
            case UInt8(ascii: ","):
                output.append(character)
                breakLine()
            case UInt8(ascii: ":"):
                output.append(character)
                output.append(UInt8(ascii: " "))
            default:
                output.append(character)
            }
            position += 1
        }
        output.append(UInt8(ascii: "\n"))
        return output
    }

    /// The place behind a string that begins at `start`.
    private static func endOfString(_ json: [UInt8], from start: Int) -> Int {
        var position = start + 1
        while position < json.count, json[position] != UInt8(ascii: "\"") {
            position += json[position] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(position + 1, json.count)
    }

    /// The place behind an empty object, or a short list of scalars, that begins at `start`; nil when it is neither.
    private static func endOfShortContainer(_ json: [UInt8], from start: Int) -> Int? {
        let isList = json[start] == UInt8(ascii: "[")
        let closing = isList ? UInt8(ascii: "]") : UInt8(ascii: "}")
        if start + 1 < json.count, json[start + 1] == closing { return start + 2 }
        guard isList else { return nil }
        var position = start + 1
        while position < json.count, position - start < longestLine {
            switch json[position] {
            case closing: return position + 1
            case UInt8(ascii: "["), UInt8(ascii: "{"): return nil
            case UInt8(ascii: "\""): position = endOfString(json, from: position)
            default: position += 1
            }
        }
        return nil
    }

    private static func appendOneLine(_ json: ArraySlice<UInt8>, to output: inout [UInt8]) {
        let json = Array(json)
        var position = 0
        while position < json.count {
            let end = json[position] == UInt8(ascii: "\"") ? endOfString(json, from: position) : position + 1
            output.append(contentsOf: json[position..<end])
            if json[position] == UInt8(ascii: ",") { output.append(UInt8(ascii: " ")) }
            position = end
        }
    }
}
