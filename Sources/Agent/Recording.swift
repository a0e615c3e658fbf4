// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Glibc
import LinuxIO

/// Why a recording cannot be read, or not to its end.
public struct RecordingError: Error {
    public let description: String
}

/// Reads a file of lines that tell what was heard and what the radios did.
public struct Recording: ~Copyable {
    private let path: String
    private var reader: LineReader
    private var lines: RecordedLines
    /// Lines that were read, the empty ones among them.
    public private(set) var lineCount: UInt64 = 0

    public init(path: String, formats: FormatCatalog, names: NameTable) throws(RecordingError) {
        do { reader = LineReader(try FileDescriptor.open(path, O_RDONLY)) } catch {
            throw RecordingError(description: error.description)
        }
        self.path = path
        lines = RecordedLines(formats: formats, names: names)
    }

    /// The next line that says something; nil at the end.
    public mutating func next() throws(RecordingError) -> RecordedLine? {
        var result: RecordedLine?
        var fault: RecordedLineError?
        var found = true
        while found, result == nil {
            do {
                found = try reader.next { line, _ in
                    lineCount += 1
                    do throws(RecordedLineError) { result = try lines.read(line) } catch { fault = error }
                }
            } catch {
                throw RecordingError(description: "\(path):\(lineCount + 1): \(error)")
            }
            if let fault { throw RecordingError(description: "\(path):\(lineCount): \(fault.text)") }
        }
        return result
    }
}
