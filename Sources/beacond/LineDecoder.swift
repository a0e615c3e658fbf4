// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel
import Configuration
import HCI

/// Answers the lines of `beacond decode`. What it needs for a line it keeps for the next one, so that lines of digits
/// allocate nothing.
struct LineDecoder: ~Copyable {
    enum Kind: String, CaseIterable {
        case advertisingData = "adv-data"
        case event = "hci-event"
        case sequence = "hci-sequence"
    }

    private struct LineError: Error {
        var description: String
    }

    private let kind: Kind
    private let frames: FrameDecoder
    private var parser = AdvertisingReportParser()
    /// What the line holds.
    private var packets = PayloadList()
    /// The advertising data in it.
    private var advertisements = PayloadList()
    /// Places of frames whose measured power cannot be true.
    private var implausible: [Int] = []

    /// - Parameter kind: of lines that do not say it themselves.
    init(_ kind: Kind, _ frames: FrameDecoder) {
        self.kind = kind
        self.frames = frames
    }

    /// Writes the answer to a line as an object; false for one that is empty and gets none.
    mutating func decode(_ line: Span<UInt8>, into writer: inout JSONWriter) -> Bool {
        guard let first = line.word(from: 0) else { return false }
        packets.removeAll()
        advertisements.removeAll()
        do throws(LineError) {
            let kind = try line[first.lowerBound] == UInt8(ascii: "{") ? readObject(line) : readDigits(line)
            guard packets.count == 1 || kind == .sequence else {
                throw LineError(description: "expected one payload a line; several are of kind hci-sequence")
            }
            writer.beginObject()
            switch kind {
            case .advertisingData: writeAdvertisingData(&writer)
            case .event, .sequence: writeReports(&writer)
            }
            writer.endObject()
        } catch {
            writer.beginObject()
            writer.key("error")
            writer.string(error.description)
            writer.endObject()
        }
        return true
    }

    // MARK: Reading

    private mutating func readDigits(_ line: Span<UInt8>) throws(LineError) -> Kind {
        var end = 0
        while let word = line.word(from: end) {
            try append(line.extracting(word))
            end = word.upperBound
        }
        return kind
    }

    private mutating func readObject(_ line: Span<UInt8>) throws(LineError) -> Kind {
        let object: Document
        do { object = try Document(line.indices.map { line[$0] }) } catch { throw LineError(description: error.text) }
        var kind = kind
        if let word = object.root["kind"] {
            guard case .text(let word) = word.content, let known = Kind(rawValue: word) else {
                throw LineError(
                    description: "\"kind\": expected one of \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            kind = known
        }
        switch object.root["hex"]?.content {
        case .text(let hex): try append(hex.utf8.span)
        case .list(let list):
            for item in list {
                guard case .text(let hex) = item.content else {
                    throw LineError(description: "\"hex\": expected texts in the list")
                }
                try append(hex.utf8.span)
            }
        default: throw LineError(description: "expected \"hex\" with hexadecimal digits, or a list of such texts")
        }
        return kind
    }

    private mutating func append(_ digits: Span<UInt8>) throws(LineError) {
        guard packets.append(hexadecimal: digits) else {
            throw LineError(
                description: digits.count.isMultiple(of: 2)
                    ? "expected hexadecimal digits only" : "expected an even number of hexadecimal digits")
        }
    }

    // MARK: Answering

    private mutating func writeAdvertisingData(_ writer: inout JSONWriter) {
        packets.forEach { data in
            writer.key("ad")
            writer.beginArray()
            let ending = AdvertisingData.forEachStructure(in: data) { type, payload in
                writer.beginArray()
                writer.integer(type.rawValue)
                writer.hexadecimal(payload)
                writer.endArray()
            }
            writer.endArray()
            writer.key("ad_status")
            writer.string(ending.word)
            advertisements.append(data)
        }
        writeFindings(&writer)
        advertisements.forEach { data in
            writer.key("device")
            DeviceInformation.write(data, into: &writer)
        }
    }

    private mutating func writeReports(_ writer: inout JSONWriter) {
        parser.reset()
        writer.key("reports")
        writer.beginArray()
        packets.forEach { packet in
            parser.parse(packet, at: .zero) { report, data in
                writer.beginObject()
                ReportWriter.write(report, data, &writer)
                writer.key("device")
                DeviceInformation.write(data, into: &writer)
                writer.endObject()
                advertisements.append(data)
            }
        }
        writer.endArray()
        writeFindings(&writer)
        if parser.malformed.total > 0 {
            writer.key("malformed")
            ReportWriter.writeMalformed(parser.malformed, &writer)
        }
    }

    /// Writes what is found in the advertisements as members of the current object: `frames`, `kinds`, and where frames
    /// claim such a power `implausible_power`, which holds their places in `frames`.
    private mutating func writeFindings(_ writer: inout JSONWriter) {
        var count = 0
        implausible.removeAll(keepingCapacity: true)
        writer.key("frames")
        writer.beginArray()
        advertisements.forEach { data in
            frames.forEachFrame(in: data) { frame, payload in
                frames.write(frame, payload, into: &writer)
                if frame.claimsImplausiblePower { implausible.append(count) }
                count += 1
            }
        }
        writer.endArray()
        writer.key("kinds")
        writer.beginArray()
        advertisements.forEach { data in
            AdvertisementKind.forEach(in: data) { kind, payload in kind.write(payload, into: &writer) }
        }
        writer.endArray()
        guard !implausible.isEmpty else { return }
        writer.key("implausible_power")
        writer.beginArray()
        for index in implausible { writer.integer(index) }
        writer.endArray()
    }
}

extension Span<UInt8> {
    /// The word at an index or behind it; nil when only white space follows.
    fileprivate func word(from start: Int) -> Range<Int>? {
        var start = start
        while start < count, Self.isSpace(self[start]) { start += 1 }
        var end = start
        while end < count, !Self.isSpace(self[end]) { end += 1 }
        return start < end ? start..<end : nil
    }

    /// Space, and tab to carriage return.
    private static func isSpace(_ character: UInt8) -> Bool {
        character == 0x20 || (0x09...0x0D).contains(character)
    }
}
