// SPDX-License-Identifier: Apache-2.0

/// Reads the lines of a file or a pipe one after the other.
public struct LineReader: ~Copyable {
    /// Why no more lines can be read.
    public enum ReadError: Error, CustomStringConvertible {
        case system(SystemError)
        case tooLong

        public var description: String {
            switch self {
            case .system(let error): error.description
            case .tooLong: "a line is longer than \(LineReader.maximumLine) characters"
            }
        }
    }

    /// Longest line; a longer one is an error, so that an endless line cannot fill the memory. A sequence of HCI packets
    /// has some 500 digits a packet.
    public static let maximumLine = 1 << 20

    private let file: FileDescriptor
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    /// What was read and not handed out yet.
    private var unread = 0..<0
    private var hasEnded = false

    public init(_ file: consuming FileDescriptor) {
        self.file = file
    }

    /// Calls `body` with the next line, without its newline, and whether another one can be had without waiting.
    ///
    /// - Returns: whether there was one.
    public mutating func next(_ body: (_ line: Span<UInt8>, _ hasMore: Bool) -> Void) throws(ReadError) -> Bool {
        var searched = unread.lowerBound
        while true {
            while searched < unread.upperBound {
                if buffer[searched] == UInt8(ascii: "\n") {
                    let line = unread.lowerBound..<searched
                    unread = searched + 1..<unread.upperBound
                    body(buffer.span.extracting(line), !unread.isEmpty)
                    return true
                }
                searched += 1
            }
            if hasEnded {
                guard !unread.isEmpty else { return false }
                let line = unread
                unread = line.upperBound..<line.upperBound
                body(buffer.span.extracting(line), false)
                return true
            }
            searched -= unread.lowerBound
            hasEnded = try !readMore()
        }
    }

    /// Reads behind what is unread, which it moves to the front; false at the end.
    private mutating func readMore() throws(ReadError) -> Bool {
        for (place, index) in unread.enumerated() { buffer[place] = buffer[index] }
        unread = 0..<unread.count
        guard unread.count <= Self.maximumLine else { throw .tooLong }
        if unread.count == buffer.count { buffer += [UInt8](repeating: 0, count: buffer.count) }
        let count: Int
        do { count = try file.read(into: &buffer, from: unread.upperBound) ?? 0 } catch { throw .system(error) }
        unread = 0..<unread.upperBound + count
        return count > 0
    }
}
