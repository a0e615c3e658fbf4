// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration
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

    private static func run(_ arguments: Arguments) throws(CommandError) -> ExitStatus {
        let word = try arguments.choice("--kind", of: LineDecoder.Kind.allCases.map(\.rawValue))
        let kind = word.flatMap(LineDecoder.Kind.init) ?? .advertisingData
        let frames =
            if let path = arguments["--config"] {
                try ConfigurationLoading.load(path: path, names: NameTable()).decoder
            } else {
                FrameDecoder()
            }
        var decoder = LineDecoder(kind, frames)
        var output = StandardOutput()
        var input = StandardInput()
        try input.forEachLine { (line, hasMore) throws(CommandError) in
            guard decoder.decode(line, into: &output.writer) else { return }
            try output.endLine()
            // A person or a program that feeds line by line waits for each answer.
            if !hasMore { try output.flush() }
        }
        try output.flush()
        return .success
    }
}
