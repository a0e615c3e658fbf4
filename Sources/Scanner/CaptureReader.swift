// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import Glibc
public import HCI
public import LinuxIO

/// Reads the packets of a btsnoop file one after the other, in a fixed amount of memory.
///
/// The file is read, not mapped: a mapped file that somebody cuts short would end the process.
public struct CaptureReader: ~Copyable {
    /// Why a capture cannot be read, or not to its end.
    public enum CaptureError: Error, CustomStringConvertible {
        case system(SystemError)
        case header(path: String, Btsnoop.HeaderError)
        /// A record claims more octets than a packet can have; what stands behind it cannot be found.
        case record(path: String, number: Int, length: UInt32)

        public var description: String {
            switch self {
            case .system(let error): error.description
            case .header(let path, let error): "\(path): \(error)"
            case .record(let path, let number, let length):
                "\(path): record \(number) claims \(length) octets, more than any packet has; the rest cannot be read"
            }
        }
    }

    private let path: String
    private let file: FileDescriptor
    private let link: Btsnoop.DataLink
    private var buffer = [UInt8](repeating: 0, count: 1 << 18)
    /// The part of the buffer that was read and not used yet.
    private var unread = 0..<0
    private var recordCount = 0
    /// Whether the file ended in the middle of a record.
    public private(set) var endedEarly = false

    public init(path: String) throws(CaptureError) {
        let opened = try Self.open(path)
        link = try Self.dataLink(opened, path)
        file = opened
        self.path = path
    }

    private static func open(_ path: String) throws(CaptureError) -> FileDescriptor {
        do { return try FileDescriptor.open(path, O_RDONLY) } catch { throw .system(error) }
    }

    private static func dataLink(
        _ file: borrowing FileDescriptor, _ path: String
    ) throws(CaptureError)
        -> Btsnoop.DataLink
    {
        var start = [UInt8](repeating: 0, count: Btsnoop.headerLength)
        var length = 0
        do {
            while length < start.count, let count = try file.read(into: &start, from: length), count > 0 {
                length += count
            }
        } catch { throw .system(SystemError("read", path, code: error.code)) }
        do { return try Btsnoop.dataLink(of: start.span.extracting(0..<length)) } catch {
            throw .header(path: path, error)
        }
    }

    /// Calls `body` with the number of the record (from 1), when it was recorded, and the HCI packet in it, its H4 packet
    /// indicator in front. Records that hold no HCI packet are passed over.
    ///
    /// - Returns: whether there was one.
    public mutating func next(_ body: (Int, MonotonicTime, Span<UInt8>) -> Void) throws(CaptureError) -> Bool {
        while true {
            guard try fill(Btsnoop.recordHeaderLength) else { return false }
            let start = unread.lowerBound + Btsnoop.recordHeaderLength
            let record = Btsnoop.Record(buffer.span.extracting(unread.lowerBound..<start))
            recordCount += 1
            guard record.includedLength <= Btsnoop.maximumPacketLength else {
                throw .record(path: path, number: recordCount, length: record.includedLength)
            }
            let length = Int(record.includedLength)
            guard try fill(Btsnoop.recordHeaderLength + length) else { return false }
            // `fill` may have moved the record to the front of the buffer.
            let packet = unread.lowerBound + Btsnoop.recordHeaderLength
            unread = packet + length..<unread.upperBound
            if link == .uart {
                body(recordCount, record.time, buffer.span.extracting(packet..<packet + length))
                return true
            }
            if let type = record.packetType(link) {
                // The octet in front of the packet belongs to the record's header, which has been read: it makes room
                // for the packet indicator without a copy.
                buffer[packet - 1] = type.rawValue
                body(recordCount, record.time, buffer.span.extracting(packet - 1..<packet + length))
                return true
            }
        }
    }

    /// Makes `count` octets of the file available at the front of `unread`; false at the end of the file.
    private mutating func fill(_ count: Int) throws(CaptureError) -> Bool {
        guard unread.count < count else { return true }
        if unread.lowerBound > 0 {
            for index in unread { buffer[index - unread.lowerBound] = buffer[index] }
            unread = 0..<unread.count
        }
        while unread.count < count {
            let read: Int?
            do { read = try file.read(into: &buffer, from: unread.upperBound) } catch {
                throw .system(SystemError("read", path, code: error.code))
            }
            guard let read, read > 0 else {
                endedEarly = endedEarly || unread.count > 0
                return false
            }
            unread = 0..<unread.upperBound + read
        }
        return true
    }
}
