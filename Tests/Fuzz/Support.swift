// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import CJansson
import Glibc

/// What libFuzzer calls. Each target is one file beside this one that defines `fuzz`.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    unsafe fuzz(UnsafeBufferPointer(start: start, count: count).span)
    return 0
}

/// Ends the run, so that libFuzzer keeps the input, when something does not hold.
func check(_ condition: Bool, _ words: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line) {
    guard !condition else { return }
    // An optimised build gives a failed precondition no words.
    let text = Array("\(file):\(line): \(words())\n".utf8)
    _ = unsafe text.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
    abort()
}

/// Holds that the octets are one document of JSON in which no object has a key twice.
func checkJSON(_ octets: [UInt8], file: StaticString = #fileID, line: UInt = #line) {
    var error = json_error_t()
    // Whole numbers as floating point, because jansson's own are smaller than those of a sequence.
    let flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL
    let document = unsafe octets.withUnsafeBytes { buffer in
        unsafe json_loadb(buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count, Int(flags), &error)
    }
    guard let document = unsafe document else {
        return check(false, "no JSON: \(String(decoding: octets, as: UTF8.self))", file: file, line: line)
    }
    unsafe json_decref(document)
}

/// Takes an input apart, front to back; behind its end stand zeros.
struct InputReader: ~Copyable, ~Escapable {
    private let octets: Span<UInt8>
    private var position = 0

    @_lifetime(copy octets)
    init(_ octets: Span<UInt8>) { self.octets = octets }

    var isAtEnd: Bool { position >= octets.count }

    mutating func octet() -> UInt8 {
        guard !isAtEnd else { return 0 }
        defer { position += 1 }
        return octets[position]
    }

    /// As many as are left, at most `count`.
    @_lifetime(copy self)
    mutating func span(_ count: Int) -> Span<UInt8> {
        let end = min(octets.count, position + count)
        defer { position = end }
        return octets.extracting(position..<end)
    }
}

/// Calls `body` with each packet of an input and when it came.
///
/// Packets stand one behind the other, each with two octets in front: the time since the one before in units of 8 ms, so
/// that fragments grow stale, and its length less the three octets of an event's header.
func forEachPacket(in input: Span<UInt8>, _ body: (Span<UInt8>, MonotonicTime) -> Void) {
    var reader = InputReader(input)
    var time = MonotonicTime.zero
    while !reader.isAtEnd {
        time = time + .milliseconds(Int64(reader.octet()) * 8)
        body(reader.span(Int(reader.octet()) + 3), time)
    }
}

extension Span where Element == UInt8 {
    var array: [UInt8] { unsafe withUnsafeBufferPointer { unsafe Array($0) } }
}

extension Hasher {
    mutating func combine(octets: Span<UInt8>) {
        unsafe octets.withUnsafeBytes { unsafe combine(bytes: $0) }
    }
}
