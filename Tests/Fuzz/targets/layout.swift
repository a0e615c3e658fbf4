// SPDX-License-Identifier: Apache-2.0

import BeaconFormats
import BeaconModel

/// Layout strings, and the formats that they make.
///
/// The input is a layout up to the first newline, and the data of an advertisement behind it.
func fuzz(_ input: Span<UInt8>) {
    var end = 0
    while end < input.count, input[end] != UInt8(ascii: "\n") { end += 1 }
    let text = String(decoding: input.extracting(0..<end).array, as: UTF8.self)
    let data = input.extracting(min(end + 1, input.count)..<input.count)
    let layout: LayoutString
    do {
        layout = try LayoutString(text)
    } catch {
        check((1...text.unicodeScalars.count + 1).contains(error.column), "column \(error.column) of \(text)")
        return check(!error.text.isEmpty, "an error without words")
    }
    check((try? LayoutString(text)) == layout, "the same text gives another layout")
    for company in [nil, 0x004C] as [UInt16?] {
        checkFrames(in: data, FrameDecoder([FormatDefinition(name: "custom", layout: layout, companyID: company)]))
    }
}
