// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

/// Who may come in, and how a gateway comes and goes, at a real mosquitto.
@Suite(.serialized) struct SessionTests {
    private static let status = "beacond/gw1/status"

    private func passwordFile(_ text: String) throws -> URL {
        let file = URL.temporaryDirectory.appending(path: UUID().uuidString)
        try Data(text.utf8).write(to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
        return file
    }

    @Test(arguments: ["5", "3.1.1"])
    func `a user name and a password open the door, wrong ones say what to check`(version: String) throws {
        let broker = try Broker(users: ["gw": "right horse"])
        let file = try passwordFile("right horse\n")
        defer { try? FileManager.default.removeItem(at: file) }
        let login: [String: Value] = [
            "username": .text("gw"), "password": .text("file:\(file.path)"), "protocol": .text(version),
        ]
        let driver = Driver(port: broker.port, login)
        try driver.open()
        try driver.write(driver.transitions(1...2))
        driver.close(isFinal: true)

        // Read anew at each connection.
        try Data("wrong horse\n".utf8).write(to: file)
        var error = try #require(Driver.failure { try driver.open() })
        #expect(error.isDisconnected)
        #expect(error.description.contains("`password`"))
        #expect(!error.description.contains("horse"))

        let stranger = Driver(port: broker.port, ["protocol": .text(version)])
        error = try #require(Driver.failure { try stranger.open() })
        #expect(error.description.contains("set `username`"))

        try FileManager.default.removeItem(at: file)
        error = try #require(Driver.failure { try driver.open() })
        #expect(error.description.contains(file.path))
        #expect(error.description.contains("No such file"))
    }

    @Test func `a password that everybody can read is warned of once`() throws {
        let broker = try Broker(users: ["gw": "x"])
        let file = try passwordFile("x")
        defer { try? FileManager.default.removeItem(at: file) }
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        let driver = Driver(port: broker.port, ["username": .text("gw"), "password": .text("file:\(file.path)")])
        try driver.open()
        try driver.open()
        #expect(driver.log.count { $0.contains("chmod") } == 1)
    }

    @Test(arguments: [false, true])
    func `with MQTT 5 offline appears only when nobody comes back`(isPlanned: Bool) throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, Self.status)
        var limits = MQTTLimits()
        limits.willDelay = 2
        let driver = Driver(port: broker.port, limits: limits)
        try driver.open()
        driver.close(isFinal: isPlanned)
        let returned = Driver(port: broker.port, limits: limits)
        try returned.open()
        try returned.idle(seconds: 4)
        #expect(subscriber.messages.map { $0["state"] } == ["online", "online"])

        returned.close(isFinal: isPlanned)
        #expect(!subscriber.wait(seconds: 0.5) { $0.count > 2 })
        #expect(subscriber.wait { $0.count > 2 })
        let will = try #require(subscriber.messages.last)
        #expect(will["state"] == "offline")
        #expect(will["gateway"] == "gw1")
        #expect(will.isRetained)
        #expect(will.quality == 1)
    }

    @Test(arguments: [false, true])
    func `with 3_1_1 offline appears at once`(isPlanned: Bool) throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, Self.status)
        let driver = Driver(port: broker.port, ["protocol": .text("3.1.1")])
        try driver.open()
        driver.close(isFinal: isPlanned)
        #expect(subscriber.wait { $0.count > 1 })
        #expect(subscriber.messages.map { $0["state"] } == ["online", "offline"])
        #expect(subscriber.messages.last?.isRetained == true)
        #expect((subscriber.messages.last?["time"] != nil) == isPlanned, "a will does not know its time")
        // Only one of the two: the will is dropped by a planned end.
        #expect(!subscriber.wait(seconds: 0.5) { $0.count > 2 })
    }

    @Test func `a second gateway with the same id is reported by the one that lost its session`() throws {
        let broker = try Broker()
        let first = Driver(port: broker.port)
        let second = Driver(port: broker.port)
        try first.open()
        try first.idle(seconds: 0.2)
        // Another connection of the same process is no stranger.
        first.close(isFinal: false)
        try first.open()
        try first.idle(seconds: 0.2)
        #expect(first.log.isEmpty)

        try second.open()
        #expect(Driver.failure { try first.idle(seconds: 5) }?.isDisconnected == true)
        try first.open()
        #expect(first.log.contains { $0.contains("another gateway uses this id") })
    }

    @Test func `a second gateway with a client identifier of its own is reported by the first`() throws {
        let broker = try Broker()
        let first = Driver(port: broker.port)
        try first.open()
        try first.idle(seconds: 0.2)
        let second = Driver(port: broker.port, ["client_id": .text("other")])
        try second.open()
        try first.idle(seconds: 0.5)
        #expect(first.log.contains { $0.contains("another gateway uses this id") })
        #expect(second.log.isEmpty)
    }

    @Test func `a status that somebody else sets to offline is corrected`() throws {
        let broker = try Broker()
        let subscriber = try Subscriber(broker, Self.status)
        let driver = Driver(port: broker.port)
        try driver.open()
        try driver.idle(seconds: 0.2)
        // Another client whose will is this gateway's: 3.1.1 publishes it at once.
        let other = Driver(port: broker.port, ["client_id": .text("other"), "protocol": .text("3.1.1")])
        try other.open()
        other.close(isFinal: false)
        try driver.idle(seconds: 2)
        #expect(subscriber.wait { $0.count >= 4 })
        #expect(subscriber.messages.suffix(2).map { $0["state"] } == ["offline", "online"])
    }

    @Test func `20 kills of the broker cost no memory and no descriptors`() throws {
        let broker = try Broker()
        let driver = Driver(port: broker.port)
        func cycle() throws {
            try driver.open()
            try driver.write(driver.transitions(1...200))
            broker.kill()
            #expect(driver.failure(driver.transitions(1...200))?.isDisconnected == true)
            for _ in 0..<100 { #expect(Driver.failure { try driver.open() } != nil) }
            try broker.start()
        }
        func descriptors() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
        for _ in 0..<3 { try cycle() }
        driver.close(isFinal: false)
        let before = try descriptors()
        // Other suites of this process allocate meanwhile; what leaks here does so each time.
        var growths: [Int] = []
        repeat {
            let before = try residentKiB()
            for _ in 0..<20 { try cycle() }
            driver.close(isFinal: false)
            growths.append(try residentKiB() - before)
        } while growths.min() ?? 0 > 1024 && growths.count < 3
        #expect(growths.min() ?? 0 <= 1024, "KiB in each round: \(growths)")
        print("20 kills: \(growths) KiB")
        #expect(try descriptors() < before + 20)
    }

    private func residentKiB() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return try #require(line?.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap { Int($0) })
    }
}
