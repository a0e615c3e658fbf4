// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Glibc
import HCI
import LinuxIO
import Scanner
import TestSupport
import Testing

/// The ways to a controller that need no Bluetooth in the kernel, each with a small controller at its other end.
@Suite struct ScannerTransportTests {
    /// Answers every command on a stream with success.
    private struct Answerer: ~Copyable {
        let stream: FileDescriptor
        var framer = H4Framer()
        var piece = [UInt8](repeating: 0, count: 512)
        var packet = [UInt8](repeating: 0, count: H4Framer.packetCapacity)

        init(_ stream: consuming FileDescriptor) { self.stream = stream }

        mutating func work() throws {
            guard let count = try stream.read(into: &piece), count > 0 else { return }
            framer.append(piece, count: count)
            while let length = framer.next(into: &packet) {
                guard length >= 4, packet[0] == 1 else { continue }
                _ = try stream.write([0x04, 0x0E, 0x04, 1, packet[1], packet[2], 0])
            }
        }
    }

    private func parameters() -> ScanParameters { ScriptedController.parameters(window: 30, interval: 30) }

    /// Runs a scanner on the machine's clock until it scans or the time is over.
    private func drive(_ scanner: AdapterScanner, _ answerer: inout Answerer?, seconds: Int64 = 10) throws {
        let end = Clock.now + .seconds(seconds)
        while !scanner.isScanning, Clock.now < end {
            scanner.advance(to: Clock.now) { _, _ in
            } _: { _ in
            }
            try answerer?.work()
            usleep(1000)
        }
    }

    private func listener(_ family: Int32) throws -> FileDescriptor {
        let number = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        try #require(number >= 0)
        return FileDescriptor(owning: number)
    }

    private func accepted(_ listener: borrowing FileDescriptor) throws -> FileDescriptor {
        let number = accept(listener.number, nil, nil)
        try #require(number >= 0)
        #expect(fcntl(number, F_SETFL, O_NONBLOCK) == 0)
        return FileDescriptor(owning: number)
    }

    @Test func aControllerIsReachedOverTCP() throws {
        let listener = try self.listener(AF_INET)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                #expect(unsafe bind(listener.number, address, length) == 0)
                #expect(unsafe getsockname(listener.number, address, &length) == 0)
            }
        }
        #expect(listen(listener.number, 4) == 0)
        let port = UInt16(bigEndian: address.sin_port)
        guard case .controller(let name) = try SourceSpecification("tcp:127.0.0.1:\(port)") else { return }
        let scanner = try AdapterScanner(SystemPort(name), parameters: parameters())
        scanner.start(at: Clock.now) { _ in }
        var answerer: Answerer? = Answerer(try accepted(listener))
        try drive(scanner, &answerer)
        #expect(scanner.isScanning)
    }

    @Test func aControllerIsReachedOverAUnixSocketWhenItComes() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("h4")
        guard case .controller(let name) = try SourceSpecification("unix:\(path)") else { return }
        let scanner = try AdapterScanner(SystemPort(name), parameters: parameters())
        var told: [AdapterScanner.Change] = []
        scanner.start(at: Clock.now) { told.append($0) }
        guard case .state(.blind, let reason?) = told.last else {
            Issue.record("\(told)")
            return
        }
        #expect(reason.contains(path) && reason.contains("is the other side running?"))

        let listener = try self.listener(AF_UNIX)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { room in
            for (index, octet) in path.utf8.enumerated() { unsafe room[index] = octet }
        }
        unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                #expect(unsafe bind(listener.number, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0)
            }
        }
        #expect(listen(listener.number, 4) == 0)
        // It is tried again after two seconds at the latest.
        let end = Clock.now + .seconds(10)
        var waiting = pollfd(fd: listener.number, events: Int16(POLLIN), revents: 0)
        while unsafe poll(&waiting, 1, 10) == 0, Clock.now < end {
            scanner.advance(to: Clock.now) { _, _ in
            } _: { _ in
            }
        }
        var answerer: Answerer? = Answerer(try accepted(listener))
        try drive(scanner, &answerer)
        #expect(scanner.isScanning)
    }

    @Test func aControllerIsReachedOverASerialLine() throws {
        var near: Int32 = 0
        var far: Int32 = 0
        var name = [CChar](repeating: 0, count: 128)
        try #require(unsafe openpty(&near, &far, &name, nil, nil) == 0)
        let path = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let line = FileDescriptor(owning: near)
        _ = FileDescriptor(owning: far)
        #expect(fcntl(line.number, F_SETFL, O_NONBLOCK) == 0)
        guard case .controller(let specification) = try SourceSpecification("serial:\(path)?baud=921600") else {
            return
        }
        let scanner = try AdapterScanner(SystemPort(specification), parameters: parameters())
        scanner.start(at: Clock.now) { _ in }
        var answerer: Answerer? = Answerer(line)
        try drive(scanner, &answerer)
        #expect(scanner.isScanning)
    }

    @Test func aHostThatDoesNotListenIsNoReasonToEnd() throws {
        guard case .controller(let name) = try SourceSpecification("tcp:127.0.0.1:1") else { return }
        let scanner = try AdapterScanner(SystemPort(name), parameters: parameters())
        var told: [AdapterScanner.Change] = []
        scanner.start(at: Clock.now) { told.append($0) }
        let end = Clock.now + .seconds(10)
        while told.count < 2, Clock.now < end {
            scanner.advance(to: Clock.now) { _, _ in
            } _: {
                told.append($0)
            }
            usleep(1000)
        }
        guard case .state(.blind, let reason?) = told.last else {
            Issue.record("\(told)")
            return
        }
        #expect(reason.hasPrefix("127.0.0.1:1: ") || reason.hasPrefix("tcp:127.0.0.1:1: "), "\(reason)")
    }

    @Test func theKernelTellsWhenAPacketCame() throws {
        var pair: [Int32] = [0, 0]
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        try #require(unsafe socketpair(AF_UNIX, type, 0, &pair) == 0)
        var on: Int32 = 1
        try #require(unsafe setsockopt(pair[0], SOL_SOCKET, SO_TIMESTAMP, &on, 4) == 0)
        let far = FileDescriptor(owning: pair[1])
        var channel = PacketChannel(FileDescriptor(owning: pair[0]), kind: .exclusive)
        _ = try far.write([4, 0x10, 1, 0])
        usleep(50_000)
        var packet = [UInt8](repeating: 0, count: PacketChannel.packetCapacity)
        guard case .packet(let count, let age) = try channel.receive(into: &packet) else {
            Issue.record("no packet")
            return
        }
        #expect(count == 4)
        #expect(age >= .milliseconds(49) && age <= .seconds(1), "\(age)")
        #expect(channel.droppedCount == 0)
        #expect(try channel.receive(into: &packet) == .nothing)
    }

    /// Octets in pieces of any size, between packets of every kind: what comes out is what went in.
    @Test(arguments: [UInt64(1), 2, 3, 4]) func theFramerFindsEveryPacket(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var stream: [UInt8] = []
        var expected: [[UInt8]] = []
        for _ in 0..<500 {
            let length = Int.random(in: 0...255, using: &generator)
            let payload = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: stream += [2, 1, 0, UInt8(length), 0] + payload
            case 1: stream += [3, 1, 0, UInt8(length)] + payload
            case 2: stream += [5, 1, 0, UInt8(length), 0x40] + payload
            case 3:
                expected.append([1, 3, 0x0C, UInt8(length)] + payload)
                stream += expected[expected.count - 1]
            default:
                expected.append([4, 0x3E, UInt8(length)] + payload)
                stream += expected[expected.count - 1]
            }
        }
        var framer = H4Framer()
        var packet = [UInt8](repeating: 0, count: H4Framer.packetCapacity)
        var found: [[UInt8]] = []
        while !stream.isEmpty {
            let count = min(stream.count, Int.random(in: 1...700, using: &generator))
            framer.append(stream, count: count)
            stream.removeFirst(count)
            while let length = framer.next(into: &packet) { found.append(Array(packet[..<length])) }
        }
        #expect(found == expected)
        #expect(framer.unknownPacketCount == 0)
        // And rubbish neither traps nor is mistaken for packets without end.
        for _ in 0..<2000 {
            framer.append((0..<64).map { _ in UInt8.random(in: 0...255, using: &generator) }, count: 64)
            while framer.next(into: &packet) != nil {}
        }
        #expect(framer.isOutOfStep)
    }
}
