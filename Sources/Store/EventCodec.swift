// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Spells events as the records of the outbox.
///
/// A record is a version, the fields below, and a CRC-32C over the sequence number and all octets before it; integers
/// are little-endian, floats their bit pattern, texts UTF-8 behind one octet of length. Formats and names are spelled
/// out, because their numbers are good for one run of the program only. So are monotonic times: what is restored has
/// ``Event/time`` zero and no ``Event/lastSeen``, and its wall times.
///
/// | field | octets |
/// | --- | --- |
/// | version, kind | 1, 1 |
/// | ``Flags`` | 2 |
/// | wall time, milliseconds | 8 |
/// | address: 6 octets, 0, kind | 8 |
/// | proximity, exit reason, adapter state | 1, 1, 1 |
/// | accuracy | 4 |
/// | exit time, nanoseconds | 8 |
/// | count of the signal, inside count | 4, 4 |
/// | name, adapter | 1 + n, 1 + n |
/// | identity: format, octets | 1 + n, 1 + n |
/// | last, minimum, maximum, measured power | 1 each |
/// | filtered | 4 |
/// | last seen, milliseconds | 8 |
/// | gap: first, last | 8, 8 |
/// | exit limit, false exits asked, expected | 1, 4, 4 |
/// | other address | 8 |
/// | trouble | 1 + n |
///
/// From the identity on, a field is there when its flag says so.
struct EventCodec: Sendable {
    static let version: UInt8 = 1
    /// Longest text in octets; a longer name is cut. One octet holds the length.
    static let textLimit = 255

    struct Flags: OptionSet {
        var rawValue: UInt16
        static let clockSynchronized = Flags(rawValue: 0x0001)
        static let configured = Flags(rawValue: 0x0002)
        static let identity = Flags(rawValue: 0x0004)
        static let last = Flags(rawValue: 0x0008)
        static let minimum = Flags(rawValue: 0x0010)
        static let maximum = Flags(rawValue: 0x0020)
        static let measuredPower = Flags(rawValue: 0x0040)
        static let filtered = Flags(rawValue: 0x0080)
        static let lastSeen = Flags(rawValue: 0x0100)
        static let gap = Flags(rawValue: 0x0200)
        static let falseExits = Flags(rawValue: 0x0400)
        static let otherAddress = Flags(rawValue: 0x0800)
        static let trouble = Flags(rawValue: 0x1000)
        /// No field: the whole fact.
        static let unhealthy = Flags(rawValue: 0x2000)
    }

    let vocabulary: Vocabulary

    // MARK: Writing

    /// Replaces `record` by the record of an event.
    func encode(_ event: Event, sequence: UInt64, into record: inout [UInt8]) {
        record.removeAll(keepingCapacity: true)
        record.append(Self.version)
        record.append(event.kind.rawValue)
        record.append(integer: flags(of: event).rawValue)
        record.append(integer: event.wallTime.milliseconds)
        record.append(integer: event.address.value | UInt64(event.address.kind.rawValue) << 56)
        record.append(event.proximity.rawValue)
        record.append(event.exitReason.rawValue)
        record.append(event.adapterState.rawValue)
        record.append(integer: event.accuracy.bitPattern)
        record.append(integer: event.exitTime.nanoseconds)
        record.append(integer: event.signal.count)
        record.append(integer: event.insideCount)
        record.append(text: vocabulary.names[event.name])
        record.append(text: vocabulary.names[event.adapter])
        if let identity = event.identity {
            record.append(text: vocabulary.formats[identity.format]?.name ?? "")
            record.append(identity.count)
            for index in 0..<Int(identity.count) { record.append(identity[index]) }
        }
        for value in [event.signal.last, event.signal.minimum, event.signal.maximum, event.measuredPower] {
            if let value { record.append(UInt8(bitPattern: value)) }
        }
        if let filtered = event.signal.filtered { record.append(integer: filtered.bitPattern) }
        if let lastSeen = event.lastSeenWallTime { record.append(integer: lastSeen.milliseconds) }
        if event.kind == .gap || event.kind == .flood {
            record.append(integer: event.gap.first)
            record.append(integer: event.gap.last)
        }
        if let (asked, expected) = event.falseExits {
            record.append(event.exitLimit.rawValue)
            record.append(integer: asked.bitPattern)
            record.append(integer: expected.bitPattern)
        }
        if event.kind == .clone {
            record.append(integer: event.otherAddress.value | UInt64(event.otherAddress.kind.rawValue) << 56)
        }
        if event.trouble != .none { record.append(text: vocabulary.names[event.trouble]) }
        Self.seal(&record, sequence: sequence)
    }

    /// Appends the check value.
    static func seal(_ record: inout [UInt8], sequence: UInt64) {
        var checksum = Checksum()
        checksum.add(sequence)
        checksum.add(record)
        record.append(integer: checksum.value)
    }

    private func flags(of event: Event) -> Flags {
        var flags: Flags = []
        if event.isClockSynchronized { flags.insert(.clockSynchronized) }
        if event.isConfigured { flags.insert(.configured) }
        if event.identity != nil { flags.insert(.identity) }
        if event.signal.last != nil { flags.insert(.last) }
        if event.signal.minimum != nil { flags.insert(.minimum) }
        if event.signal.maximum != nil { flags.insert(.maximum) }
        if event.measuredPower != nil { flags.insert(.measuredPower) }
        if event.signal.filtered != nil { flags.insert(.filtered) }
        if event.lastSeenWallTime != nil { flags.insert(.lastSeen) }
        if event.kind == .gap || event.kind == .flood { flags.insert(.gap) }
        if event.falseExits != nil { flags.insert(.falseExits) }
        if event.kind == .clone { flags.insert(.otherAddress) }
        if event.trouble != .none { flags.insert(.trouble) }
        if !event.isHealthy { flags.insert(.unhealthy) }
        return flags
    }

    // MARK: Reading

    /// The event of a record; nil when it was changed, or holds what this version of the program does not know.
    func decode(_ record: [UInt8], sequence: UInt64) -> Event? {
        let end = record.count - 4
        guard end > 0 else { return nil }
        var checksum = Checksum()
        checksum.add(sequence)
        checksum.add(record[..<end])
        var check = RecordReader(octets: record[end...])
        guard (try? check.integer(UInt32.self)) == checksum.value else { return nil }
        var reader = RecordReader(octets: record[..<end])
        guard let event = try? event(&reader), reader.isAtEnd else { return nil }
        return event
    }

    private func event(_ reader: inout RecordReader) throws(RecordReader.Failure) -> Event {
        guard try reader.integer(UInt8.self) == Self.version else { throw .unknown }
        var event = Event(kind: try reader.value(Event.Kind.init(rawValue:)), time: .zero)
        let flags = Flags(rawValue: try reader.integer())
        event.isClockSynchronized = flags.contains(.clockSynchronized)
        event.isConfigured = flags.contains(.configured)
        event.wallTime = WallTime(milliseconds: try reader.integer())
        let address: UInt64 = try reader.integer()
        event.address = DeviceAddress(value: address, kind: .init(rawValue: UInt8(address >> 56)))
        event.proximity = try reader.value(Proximity.init(rawValue:))
        event.exitReason = try reader.value(Event.ExitReason.init(rawValue:))
        event.adapterState = try reader.value(Event.AdapterState.init(rawValue:))
        event.accuracy = Float(bitPattern: try reader.integer())
        event.exitTime = TimeInterval(nanoseconds: try reader.integer())
        event.signal.count = try reader.integer()
        event.insideCount = try reader.integer()
        event.name = vocabulary.names.intern(try reader.text())
        event.adapter = vocabulary.names.intern(try reader.text())
        if flags.contains(.identity) {
            guard let format = vocabulary.formats.id(named: try reader.text()) else { throw .unknown }
            let octets = try reader.lengthAndOctets()
            guard octets.count <= BeaconIdentity.capacity else { throw .unknown }
            event.identity = BeaconIdentity(format: format, octets: Array(octets).span)
        }
        if flags.contains(.last) { event.signal.last = try reader.integer() }
        if flags.contains(.minimum) { event.signal.minimum = try reader.integer() }
        if flags.contains(.maximum) { event.signal.maximum = try reader.integer() }
        if flags.contains(.measuredPower) { event.measuredPower = try reader.integer() }
        if flags.contains(.filtered) { event.signal.filtered = Float(bitPattern: try reader.integer()) }
        if flags.contains(.lastSeen) { event.lastSeenWallTime = WallTime(milliseconds: try reader.integer()) }
        if flags.contains(.gap) { event.gap = (try reader.integer(), try reader.integer()) }
        if flags.contains(.falseExits) {
            event.exitLimit = try reader.value(Event.ExitLimit.init(rawValue:))
            event.falseExits = (
                Float(bitPattern: try reader.integer()), Float(bitPattern: try reader.integer())
            )
        }
        if flags.contains(.otherAddress) {
            let other: UInt64 = try reader.integer()
            event.otherAddress = DeviceAddress(value: other, kind: .init(rawValue: UInt8(other >> 56)))
        }
        if flags.contains(.trouble) { event.trouble = vocabulary.names.intern(try reader.text()) }
        event.isHealthy = !flags.contains(.unhealthy)
        return event
    }
}

/// Takes the fields of a record, front to back.
private struct RecordReader {
    enum Failure: Error { case truncated, unknown }

    var octets: ArraySlice<UInt8>

    var isAtEnd: Bool { octets.isEmpty }

    mutating func integer<Integer: FixedWidthInteger>(_ type: Integer.Type = Integer.self) throws(Failure) -> Integer {
        var value: Integer = 0
        for (index, octet) in try take(Integer.bitWidth / 8).enumerated() {
            value |= Integer(truncatingIfNeeded: octet) << Integer(index * 8)
        }
        return value
    }

    mutating func value<Value>(_ make: (UInt8) -> Value?) throws(Failure) -> Value {
        guard let value = make(try integer()) else { throw .unknown }
        return value
    }

    mutating func text() throws(Failure) -> String {
        String(decoding: try lengthAndOctets(), as: UTF8.self)
    }

    mutating func lengthAndOctets() throws(Failure) -> ArraySlice<UInt8> {
        try take(Int(try integer(UInt8.self)))
    }

    private mutating func take(_ count: Int) throws(Failure) -> ArraySlice<UInt8> {
        guard octets.count >= count else { throw .truncated }
        defer { octets.removeFirst(count) }
        return octets.prefix(count)
    }
}

extension [UInt8] {
    fileprivate mutating func append<Integer: FixedWidthInteger>(integer value: Integer) {
        for shift in stride(from: 0, to: Integer.bitWidth, by: 8) {
            append(UInt8(truncatingIfNeeded: value >> Integer(shift)))
        }
    }

    fileprivate mutating func append(text: String) {
        var kept = text[...]
        while kept.utf8.count > EventCodec.textLimit { kept.unicodeScalars.removeLast() }
        append(UInt8(kept.utf8.count))
        append(contentsOf: kept.utf8)
    }
}
