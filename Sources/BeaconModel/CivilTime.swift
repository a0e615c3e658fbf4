// SPDX-License-Identifier: Apache-2.0

/// A moment as a date and a time of day in UTC (proleptic Gregorian calendar).
public struct CivilTime: Sendable {
    public let year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int, millisecond: Int

    /// nil outside the years 0 to 9999, which RFC 3339 cannot spell.
    public init?(_ time: WallTime) {
        let millisecondsADay: Int64 = 86_400_000
        var days = time.milliseconds / millisecondsADay
        var rest = time.milliseconds % millisecondsADay
        if rest < 0 {
            rest += millisecondsADay
            days -= 1
        }
        guard days > -719_529, days < 2_932_897 else { return nil }
        // Counted from 0000-03-01 a leap day ends a year, and a period of 400 years has 146,097 days.
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = Int(dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
        month = Int(monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9)
        year = Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0)
        hour = Int(rest / 3_600_000)
        minute = Int(rest / 60_000 % 60)
        second = Int(rest / 1000 % 60)
        millisecond = Int(rest % 1000)
        guard (0...9999).contains(year) else { return nil }
    }

    /// Appends `2026-11-30`.
    public func appendDate(to text: inout [UInt8]) {
        Self.append(year, month, day, separator: UInt8(ascii: "-"), firstDigits: 4, to: &text)
    }

    /// Appends `21:09:00`.
    public func appendTimeOfDay(to text: inout [UInt8]) {
        Self.append(hour, minute, second, separator: UInt8(ascii: ":"), firstDigits: 2, to: &text)
    }

    private static func append(
        _ first: Int, _ second: Int, _ third: Int, separator: UInt8, firstDigits: Int, to text: inout [UInt8]
    ) {
        Decimal.append(UInt64(first), minimumDigits: firstDigits, to: &text)
        text.append(separator)
        Decimal.append(UInt64(second), minimumDigits: 2, to: &text)
        text.append(separator)
        Decimal.append(UInt64(third), minimumDigits: 2, to: &text)
    }
}

/// The second of a moment, `2026-11-30T21:09:00`. It is kept, because a moment that is spelled mostly lies in the same
/// second as the one before it.
struct SpelledSecond: Sendable {
    private(set) var text: [UInt8] = []
    private var second: Int64 = .min

    /// Spells the second of `time`; false outside the years 0 to 9999.
    mutating func spell(_ time: WallTime) -> Bool {
        if time.second == second { return true }
        guard let date = CivilTime(time) else { return false }
        second = time.second
        text.removeAll(keepingCapacity: true)
        date.appendDate(to: &text)
        text.append(UInt8(ascii: "T"))
        date.appendTimeOfDay(to: &text)
        return true
    }
}

extension WallTime {
    /// Whole seconds since 1970, towards the past.
    fileprivate var second: Int64 { milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0) }

    /// 0 to 999, whatever the year.
    var millisecondOfSecond: UInt64 {
        let rest = milliseconds % 1000
        return UInt64(rest < 0 ? rest + 1000 : rest)
    }
}
