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
    private var piece: [UInt8]

    public init(_ file: consuming FileDescriptor, kind: Kind) {
        self.kind = kind
        self.file = file
        piece = kind == .stream ? [UInt8](repeating: 0, count: 4096) : []
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
    public mutating func receive(into packet: inout [UInt8]) throws(SystemError) -> Received {
        guard kind == .stream else { return try receiveWhole(into: &packet) }
        while true {
            if let count = framer.next(into: &packet) { return .packet(count: count, age: .zero) }
            guard let count = try file.read(into: &piece) else { return framer.isOutOfStep ? .outOfStep : .nothing }
            guard count > 0 else { return .closed }
            framer.append(piece, count: count)
        }
    }

    private func receiveWhole(into packet: inout [UInt8]) throws(SystemError) -> Received {
        var received: Int64 = 0
        let count = unsafe packet.withUnsafeMutableBytes { bytes in
            retryingOnInterrupt {
                unsafe cbluetooth_receive(file.number, bytes.baseAddress, bytes.count, &received)
            }
        }
        if count < 0 {
            if errno == EAGAIN || errno == EWOULDBLOCK { return .nothing }
            throw SystemError("recvmsg", "")
        }
        guard count > 0 else { return .closed }
        return .packet(count: count, age: received == 0 ? .zero : Clock.age(of: received))
    }
}
