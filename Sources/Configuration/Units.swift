// SPDX-License-Identifier: Apache-2.0

public import BeaconModel

/// Lengths of time as people write them: a number and its unit, `"90s"`, `"2.5ms"`, `"1h"`.
public enum DurationText {
    /// The spelling as a regular expression (ECMA-262).
    static let pattern = "^[0-9]+([.][0-9]{1,3})?(ms|s|m|h|d)$"

    /// Nanoseconds, the longest first.
    private static let units: [(name: String, nanoseconds: Int64)] = [
        ("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000),
        ("ms", 1_000_000),
    ]

    /// Reads a number with at most three decimals and one of `ms`, `s`, `m`, `h`, `d`; nil for anything else. What is
    /// too long for a ``TimeInterval`` (292 years) becomes the longest one.
    public static func interval(_ text: String) -> TimeInterval? {
        guard let (number, name) = splitUnit(text), let unit = units.first(where: { $0.name == name }) else {
            return nil
        }
        let parts = number.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = saturatingNumber(parts[0]) else { return nil }
        var thousandths: Int64 = 0
        if parts.count == 2 {
            guard (1...3).contains(parts[1].count), let digits = saturatingNumber(parts[1]) else { return nil }
            thousandths = digits * [100, 10, 1][parts[1].count - 1]
        }
        let (product, overflow) = whole.multipliedReportingOverflow(by: unit.nanoseconds)
        let (sum, sumOverflow) = product.addingReportingOverflow(thousandths * (unit.nanoseconds / 1000))
        return TimeInterval(nanoseconds: overflow || sumOverflow ? .max : sum)
    }

    /// The shortest spelling that ``interval(_:)`` reads back; finer than a microsecond is cut off.
    public static func text(_ interval: TimeInterval) -> String {
        let nanoseconds = max(0, interval.nanoseconds)
        if nanoseconds == 0 { return "0s" }
        if let unit = units.first(where: { $0.name != "ms" && nanoseconds.isMultiple(of: $0.nanoseconds) }) {
            return "\(nanoseconds / unit.nanoseconds)\(unit.name)"
        }
        let isSeconds = nanoseconds > 1_000_000_000 && nanoseconds.isMultiple(of: 1_000_000)
        let (unit, name): (Int64, String) = isSeconds ? (1_000_000_000, "s") : (1_000_000, "ms")
        var writer = JSONWriter()
        writer.decimal(Double(nanoseconds / (unit / 1000)) / 1000, decimals: 3)
        return writer.text + name
    }
}

/// Counts of bytes as people write them: a whole number and its unit, `"512B"`, `"64KiB"`, `"10MiB"`, `"1GiB"`.
public enum SizeText {
    /// The spelling as a regular expression (ECMA-262).
    static let pattern = "^[0-9]+(B|KiB|MiB|GiB)$"

    private static let units: [(name: String, bytes: Int64)] = [
        ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
    ]

    /// Reads a whole number and one of `B`, `KiB`, `MiB`, `GiB`; nil for anything else. What does not fit becomes
    /// `Int64.max`.
    public static func bytes(_ text: String) -> Int64? {
        guard let (number, name) = splitUnit(text), let unit = units.first(where: { $0.name == name }),
            let count = saturatingNumber(number[...])
        else { return nil }
        let (product, overflow) = count.multipliedReportingOverflow(by: unit.bytes)
        return overflow ? .max : product
    }

    /// The shortest spelling that ``bytes(_:)`` reads back.
    public static func text(_ bytes: Int64) -> String {
        let bytes = max(0, bytes)
        let unit = units.first { bytes > 0 && bytes.isMultiple(of: $0.bytes) } ?? ("B", 1)
        return "\(bytes / unit.bytes)\(unit.name)"
    }
}

/// Splits `2.5ms` into `2.5` and `ms`.
private func splitUnit(_ text: String) -> (number: String, unit: String)? {
    let number = text.unicodeScalars.prefix { ("0"..."9").contains($0) || $0 == "." }
    guard !number.isEmpty else { return nil }
    return (String(number), String(text.unicodeScalars.dropFirst(number.count)))
}

/// Reads decimal digits and nothing else; `Int64.max` when they are too many.
private func saturatingNumber(_ text: Substring) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
        return nil
    }
    return Int64(text) ?? .max
}
