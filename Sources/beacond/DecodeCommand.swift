// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration
import HCI
import LinuxIO

/// `beacond decode`: payloads as hexadecimal digits in, what they say as JSON out, a line for a line.
enum DecodeCommand {
    static let command = Command(
        name: "decode", operands: "", operandCount: 0...0,
        summary: "Decodes payloads that stand as hexadecimal digits on standard input, one a line.",
        options: [
            Option("--kind", "KIND", "adv-data (default), hci-event or hci-sequence"),
            Option("--config", "FILE", "knows the formats of this configuration, too"),
        ],
        details: """
            Each line is either hexadecimal digits of the kind that --kind says, or a JSON object
            with "kind" and "hex". For hci-sequence the packets of one line are separated by spaces,
            or "hex" is a list. hci packets have their H4 packet indicator (04) in front.

            Each answer is one JSON object a line: "ad", "ad_status", "frames", "kinds" (what is known
            and no beacon) and "device" for advertising data; "reports", "frames" and "kinds" for HCI
            packets; "error" for a line that cannot be read. "implausible_power" names the places of
            frames whose measured power cannot be true. docs/formats.md describes every format.

            Example:
              echo 1aff4c000215f7826da64fa24e988024bc5b71e0893e00010002c5 | beacond decode
            """,
        run: run)

    private enum Kind: String, CaseIterable {
        case advertisingData = "adv-data"
        case event = "hci-event"
        case sequence = "hci-sequence"
    }

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let word = try arguments.choice("--kind", of: Kind.allCases.map(\.rawValue))
        let kind = word.flatMap(Kind.init) ?? .advertisingData
        let decoder =
            if let path = arguments["--config"] {
                try ConfigurationLoading.load(path: path, names: NameTable()).decoder
            } else {
                FrameDecoder()
            }
        var output = StandardOutput()
        var input = StandardInput()
        while let line = try input.nextLine() {
            let line = line.trimmingSpaces
            guard !line.isEmpty else { continue }
            answer(String(line), kind, decoder, &output.writer)
            try output.endLine()
            // A person or a program that feeds line by line waits for each answer.
            if !input.hasMore { try output.flush() }
        }
        try output.flush()
        return .success
    }

    private static func answer(_ line: String, _ kind: Kind, _ decoder: FrameDecoder, _ writer: inout JSONWriter) {
        do {
            let (kind, packets) = try request(line, kind)
            writer.beginObject()
            switch kind {
            case .advertisingData: writeAdvertisingData(packets.first ?? [], decoder, &writer)
            case .event, .sequence: writeReports(packets, decoder, &writer)
            }
            writer.endObject()
        } catch {
            writer.beginObject()
            writer.key("error")
            writer.string(error.description)
            writer.endObject()
        }
    }

    private struct LineError: Error, CustomStringConvertible {
        var description: String
    }

    private static func request(_ line: String, _ kind: Kind) throws(LineError) -> (Kind, [[UInt8]]) {
        guard line.hasPrefix("{") else {
            let texts = line.split(separator: " ").map(String.init)
            return (kind, try octets(texts, kind))
        }
        let object: Document
        do { object = try Document(Array(line.utf8)) } catch { throw LineError(description: error.text) }
        var kind = kind
        if let word = object.root["kind"] {
            guard case .text(let word) = word.content, let known = Kind(rawValue: word) else {
                throw LineError(
                    description: "\"kind\": expected one of \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            kind = known
        }
        switch object.root["hex"]?.content {
        case .text(let hex): return (kind, try octets([hex], kind))
        case .list(let list):
            var texts: [String] = []
            for item in list {
                guard case .text(let hex) = item.content else {
                    throw LineError(description: "\"hex\": expected texts in the list")
                }
                texts.append(hex)
            }
            return (kind, try octets(texts, kind))
        default: throw LineError(description: "expected \"hex\" with hexadecimal digits, or a list of such texts")
        }
    }

    private static func octets(_ texts: [String], _ kind: Kind) throws(LineError) -> [[UInt8]] {
        guard texts.count == 1 || kind == .sequence else {
            throw LineError(description: "expected one payload a line; several are of kind hci-sequence")
        }
        var packets: [[UInt8]] = []
        for text in texts {
            guard let octets = Hexadecimal.octets(text) else {
                throw LineError(
                    description: text.utf8.count.isMultiple(of: 2)
                        ? "expected hexadecimal digits only" : "expected an even number of hexadecimal digits")
            }
            packets.append(octets)
        }
        return packets
    }

    private static func writeAdvertisingData(_ data: [UInt8], _ decoder: FrameDecoder, _ writer: inout JSONWriter) {
        writer.key("ad")
        writer.beginArray()
        let ending = AdvertisingData.forEachStructure(in: data.span) { type, payload in
            writer.beginArray()
            writer.integer(type.rawValue)
            writer.hexadecimal(payload)
            writer.endArray()
        }
        writer.endArray()
        writer.key("ad_status")
        writer.string(ending.word)
        ReportWriter.writeFindings([data], decoder, &writer)
        writer.key("device")
        DeviceInformation.write(data.span, into: &writer)
    }

    private static func writeReports(_ packets: [[UInt8]], _ decoder: FrameDecoder, _ writer: inout JSONWriter) {
        var parser = AdvertisingReportParser()
        var data: [[UInt8]] = []
        writer.key("reports")
        writer.beginArray()
        for packet in packets {
            parser.parse(packet.span, at: .zero) { report, payload in
                writer.beginObject()
                ReportWriter.write(report, payload, &writer)
                writer.key("device")
                DeviceInformation.write(payload, into: &writer)
                writer.endObject()
                data.append(payload.indices.map { payload[$0] })
            }
        }
        writer.endArray()
        ReportWriter.writeFindings(data, decoder, &writer)
        if parser.malformed.total > 0 {
            writer.key("malformed")
            ReportWriter.writeMalformed(parser.malformed, &writer)
        }
    }
}

extension String {
    /// Without white space at the ends.
    fileprivate var trimmingSpaces: Substring {
        var text = self[...]
        while let first = text.first, first.isWhitespace { text.removeFirst() }
        while let last = text.last, last.isWhitespace { text.removeLast() }
        return text
    }
}
