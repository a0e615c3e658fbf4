// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Synchronization
import TestSupport

/// A listener that says to each connection what a test wants, for what mosquitto cannot be made to do.
final class ScriptedBroker: Sendable {
    struct Packet: Sendable {
        var header: UInt8
        var body: [UInt8]
        var type: UInt8 { header >> 4 }

        /// Identifier of a PUBLISH at QoS 1.
        var identifier: [UInt8] {
            let topic = Int(body[0]) << 8 | Int(body[1])
            return Array(body[(2 + topic)..<(4 + topic)])
        }
        /// Protocol level of a CONNECT.
        var level: UInt8 { body[6] }
    }

    let port: UInt16
    /// The packets of all connections, in order.
    let packets = Mutex<[Packet]>([])
    private let listener: Int32

    /// - Parameter answer: bytes to send after a packet, or nil to hang up; gets the number of the connection, from 0.
    init(_ answer: @escaping @Sendable (_ connection: Int, Packet) -> [UInt8]?) throws {
        port = try Broker.freePort()
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var one: Int32 = 1
        unsafe setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = Broker.loopback(port: port)
        let isBound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(listener, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isBound, listen(listener, 8) == 0 else { throw Broker.Failure.didNotStart("scripted broker") }
        Thread.detachNewThread { [weak self] in
            defer { Glibc.close(listener) }
            var connection = 0
            while true {
                let socket = accept(listener, nil, nil)
                guard socket >= 0 else { return }
                while let packet = Self.read(socket) {
                    self?.packets.withLock { $0.append(packet) }
                    guard let bytes = answer(connection, packet) else { break }
                    if !bytes.isEmpty { _ = unsafe Glibc.write(socket, bytes, bytes.count) }
                }
                // Unread bytes at close(2) would reset the connection, and what was answered might be lost with it.
                shutdown(socket, Int32(SHUT_WR))
                while Self.read(socket, 1) != nil {}
                Glibc.close(socket)
                connection += 1
            }
        }
    }

    deinit {
        // The thread closes it: a number that is free too early would come back as somebody else's socket.
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private static func read(_ socket: Int32) -> Packet? {
        guard let header = read(socket, 1)?.first else { return nil }
        var length = 0
        var shift = 0
        while true {
            guard let digit = read(socket, 1)?.first else { return nil }
            length |= Int(digit & 0x7F) << shift
            if digit & 0x80 == 0 { break }
            shift += 7
        }
        guard let body = read(socket, length) else { return nil }
        return Packet(header: header, body: body)
    }

    private static func read(_ socket: Int32, _ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var offset = 0
        while offset < count {
            let start = offset
            let size = unsafe bytes.withUnsafeMutableBytes {
                unsafe Glibc.read(socket, $0.baseAddress?.advanced(by: start), count - start)
            }
            guard size > 0 else { return nil }
            offset += size
        }
        return bytes
    }

    // MARK: Answers

    static let acceptV5: [UInt8] = [0x20, 3, 0, 0, 0]
    static let acceptV311: [UInt8] = [0x20, 2, 0, 0]
    static func acknowledge(_ packet: Packet) -> [UInt8] { [0x40, 2] + packet.identifier }
    static func refuse(_ packet: Packet, _ code: UInt8) -> [UInt8] { [0x40, 3] + packet.identifier + [code] }

    /// What an ordinary broker answers.
    static func ordinary(_ packet: Packet) -> [UInt8] {
        switch packet.type {
        case 1: packet.level == 5 ? acceptV5 : acceptV311
        case 3: packet.header & 0x06 == 0 ? [] : acknowledge(packet)
        case 12: [0xD0, 0]
        default: []
        }
    }
}
