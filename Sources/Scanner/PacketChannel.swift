// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import CBluetooth
import Glibc
import HCI
public import LinuxIO

/// Whole HCI packets to and from one controller, whatever is between.
public struct PacketChannel: ~Copyable {
    public enum Kind: Sendable {
        /// The raw channel: the kernel and other programs drive the controller too.
        case shared
        /// The user channel: packets stay whole, and the controller is ours alone.
        case exclusive
        /// H4 on a stream; the controller is ours alone.
        case stream
    }

    /// What ``receive(into:)`` found.
    public enum Received: Equatable, Sendable {
        /// A packet of so many octets, and how long ago the kernel received it; zero where it does not tell.
        case packet(count: Int, age: TimeInterval)
        case nothing
        case closed
        /// The stream is out of step: the controller must be reset.
        case outOfStep
    }

    /// Room for a packet: an event has at most 258 octets with its indicator, a command 259.
    public static let packetCapacity = 264

    public let kind: Kind
    private let file: FileDescriptor
    private var framer = H4Framer()
    /// What one call read: a piece of a stream, or packets in rooms of ``packetCapacity``.
    private var piece: [UInt8]
    private var lengths: [UInt32]
    private var times: [Int64]
    /// Of the packets in `piece`, those that are there and those that were handed out.
    private var count = 0
    private var next = 0
    /// The last call took all there was; the next one would be for nothing.
    private var isDrained = false

    public init(_ file: consuming FileDescriptor, kind: Kind) {
        self.kind = kind
        self.file = file
        let packets = kind == .stream ? 0 : Int(CBLUETOOTH_PACKETS)
        piece = [UInt8](repeating: 0, count: kind == .stream ? 4096 : packets * Self.packetCapacity)
        lengths = [UInt32](repeating: 0, count: packets)
        times = [Int64](repeating: 0, count: packets)
    }

    public var descriptor: Int32 { file.number }
    public var unknownPacketCount: UInt64 { framer.unknownPacketCount }

    /// Packets that the kernel dropped because its buffer was full.
    ///
    /// HCI sockets do not send `SO_RXQ_OVFL` along, but they count, and `SO_MEMINFO` tells.
    public var droppedCount: UInt64 {
        kind == .stream ? 0 : UInt64(max(0, cbluetooth_drops(file.number)))
    }

    /// Whether a connection that was begun is made.
    public func isReady() throws(SystemError) -> Bool { kind == .stream ? try file.connectionIsReady() : true }

    /// Sends one packet.
    public func send(_ packet: [UInt8]) throws(SystemError) {
        // Commands are short and one at a time, so that room is short only when nobody reads.
        guard try file.write(packet) == packet.count else { throw SystemError("write", "", code: EAGAIN) }
    }

    /// Takes one packet, with its indicator, to the front of `packet`, which has ``packetCapacity`` octets.
    ///
    /// Several are read with one call of the system. After a short one `nothing` comes without another: what arrives
    /// meanwhile makes the descriptor readable again.
    public mutating func receive(into packet: inout [UInt8]) throws(SystemError) -> Received {
        kind == .stream ? try receivePiece(into: &packet) : try receiveWhole(into: &packet)
    }

    private mutating func receivePiece(into packet: inout [UInt8]) throws(SystemError) -> Received {
        while true {
            if let count = framer.next(into: &packet) { return .packet(count: count, age: .zero) }
            guard !endsTurn(), let count = try file.read(into: &piece) else {
                return framer.isOutOfStep ? .outOfStep : .nothing
            }
            guard count > 0 else { return .closed }
            isDrained = count < piece.count
            framer.append(piece, count: count)
        }
    }

    private mutating func receiveWhole(into packet: inout [UInt8]) throws(SystemError) -> Received {
        if next == count {
            guard !endsTurn() else { return .nothing }
            next = 0
            count = Int(receivePackets())
            if count < 0 {
                count = 0
                if errno == EAGAIN || errno == EWOULDBLOCK { return .nothing }
                throw SystemError("recvmmsg", "")
            }
            guard count > 0 else { return .closed }
            isDrained = count < lengths.count
        }
        defer { next += 1 }
        let length = min(Int(lengths[next]), Self.packetCapacity)
        guard length > 0 else { return .closed }
        let start = next * Self.packetCapacity
        for index in 0..<length { packet[index] = piece[start + index] }
        return .packet(count: length, age: times[next] == 0 ? .zero : Clock.age(of: times[next]))
    }

    private mutating func endsTurn() -> Bool {
        defer { isDrained = false }
        return isDrained
    }

    private mutating func receivePackets() -> Int32 {
        unsafe piece.withUnsafeMutableBufferPointer { octets in
            unsafe lengths.withUnsafeMutableBufferPointer { lengths in
                unsafe times.withUnsafeMutableBufferPointer { times in
                    retryingOnInterrupt {
                        // Safe: each has room for CBLUETOOTH_PACKETS packets, see `init`.
                        unsafe cbluetooth_receive(
                            file.number, octets.baseAddress, Self.packetCapacity, lengths.baseAddress,
                            times.baseAddress)
                    }
                }
            }
        }
    }
}
