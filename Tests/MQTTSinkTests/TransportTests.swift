// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Foundation
import LinuxIO
import SinkKit
import TestSupport
import Testing

@testable import MQTTSink

/// TLS with real certificates, and sockets of the machine, at a real mosquitto.
@Suite(.serialized) struct TransportTests {
    private static let certificates = Result { try Certificates() }

    /// A broker that listens in the clear for the subscriber, and with TLS for the gateway.
    private func secureBroker(
        _ certificates: Certificates, certificate: String = "broker.crt", key: String = "broker.key",
        _ more: [String] = []
    ) throws -> (broker: Broker, port: UInt16) {
        let port = try Broker.freePort()
        let settings = [
            "listener \(port) 127.0.0.1", "cafile \(certificates.path("ca.crt"))",
            "certfile \(certificates.path(certificate))", "keyfile \(certificates.path(key))",
        ]
        return (try Broker(settings: settings + more), port)
    }

    private func keys(_ certificates: Certificates) -> [String: Value] {
        ["tls": .boolean(true), "ca_file": .text(certificates.path("ca.crt"))]
    }

    @Test(arguments: ["5", "3.1.1"])
    func `a broker with a certificate of the authority is spoken to`(version: String) throws {
        let certificates = try Self.certificates.get()
        let (broker, port) = try secureBroker(certificates)
        let subscriber = try Subscriber(broker, "beacond/gw1/#")
        let driver = Driver(port: port, keys(certificates).merging(["protocol": .text(version)]) { $1 })
        try driver.open()
        try driver.write(driver.transitions(1...300))
        try driver.idle(seconds: 0.2)
        try driver.write(driver.transitions(301...600))
        #expect(subscriber.wait { $0.compactMap { $0["seq"] }.count == 600 })
        #expect(subscriber.messages.compactMap { $0["seq"] } == (1...600).map { "\($0)" })
        driver.close(isFinal: true)
    }

    @Test func `an unknown authority and a wrong name are refused, and said`() throws {
        let certificates = try Self.certificates.get()
        let (broker, port) = try secureBroker(certificates)
        defer { broker.kill() }
        let stranger = Driver(port: port, ["tls": .boolean(true), "ca_file": .text(certificates.path("gateway.crt"))])
        var error = try #require(Driver.failure { try stranger.open() })
        #expect(error.isDisconnected)
        #expect(error.reason.contains("certificate verify failed"), "\(error)")
        #expect(error.reason.contains("`ca_file`"))

        let (other, wrongPort) = try secureBroker(certificates, certificate: "elsewhere.crt", key: "elsewhere.key")
        defer { other.kill() }
        error = try #require(Driver.failure { try Driver(port: wrongPort, keys(certificates)).open() })
        #expect(error.reason.contains("TLS"), "\(error)")
    }

    @Test func `a gateway shows its certificate to a broker that asks for one`() throws {
        let certificates = try Self.certificates.get()
        let (broker, port) = try secureBroker(certificates, ["require_certificate true"])
        defer { broker.kill() }
        let error = try #require(Driver.failure { try Driver(port: port, keys(certificates)).open() })
        // "certificate required", unless the end of the connection overtakes the broker's alert.
        #expect(error.reason.contains("certificate") || error.reason.contains("closed"), "\(error)")

        let files: [String: Value] = [
            "certificate_file": .text(certificates.path("gateway.crt")),
            "key_file": .text(certificates.path("gateway.key")),
        ]
        let driver = Driver(port: port, keys(certificates).merging(files) { $1 })
        try driver.open()
        try driver.write(driver.transitions(1...50))
    }

    @Test func `a certificate that is not valid yet is tried until it is`() throws {
        let certificates = try Certificates()
        let start = Date.now.addingTimeInterval(6)
        try certificates.makeCertificate(validFrom: start)
        let (broker, port) = try secureBroker(certificates, certificate: "later.crt")
        defer { broker.kill() }
        let driver = Driver(port: port, limits: MQTTLimits(isClockSynchronized: { false }), keys(certificates))
        let error = try #require(Driver.failure { try driver.open() })
        #expect(error.isDisconnected)
        #expect(error.reason.contains("the clock of this machine"), "\(error)")
        #expect(error.longestWait == .seconds(5), "the clock may be right soon")
        let certain = Driver(port: port, limits: MQTTLimits(isClockSynchronized: { true }), keys(certificates))
        #expect(try #require(Driver.failure { try certain.open() }).longestWait == nil)
        Thread.sleep(until: start.addingTimeInterval(1))
        try driver.open()
    }

    @Test func `nobody listens, which is noticed at once`() throws {
        let certificates = try Self.certificates.get()
        let start = Clock.now
        let error = try #require(
            Driver.failure { try Driver(port: try Broker.freePort(), keys(certificates)).open() })
        #expect(error.reason.contains("refused"), "\(error)")
        #expect(Clock.now - start < .seconds(8))
    }

    @Test func `a missing file is named`() throws {
        let driver = Driver(port: 1, ["tls": .boolean(true), "ca_file": .text("/nowhere/ca.crt")])
        let error = try #require(Driver.failure { try driver.open() })
        #expect(error.reason.contains("/nowhere/ca.crt"))
    }

    @Test func `the protocol that was asked for is offered in the handshake`() throws {
        let certificates = try Self.certificates.get()
        let port = try Broker.freePort()
        let server = Process()
        server.executableURL = Certificates.openssl
        server.arguments = [
            "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificates.path("broker.crt"), "-key",
            certificates.path("broker.key"), "-alpn", "mqtt", "-naccept", "1",
        ]
        let output = Pipe()
        let input = Pipe()
        server.standardInput = input
        server.standardOutput = output
        server.standardError = FileHandle.nullDevice
        try server.run()
        defer {
            if server.isRunning { kill(server.processIdentifier, SIGKILL) }
            server.waitUntilExit()
        }
        let limits = MQTTLimits(connectTime: .seconds(3))
        let driver = Driver(port: port, limits: limits, keys(certificates).merging(["alpn": .text("mqtt")]) { $1 })
        let deadline = Date.now.addingTimeInterval(20)
        // Refused until the server listens; then it never answers CONNECT.
        while Date.now < deadline, Driver.failure({ try driver.open() })?.reason.contains("no answer") != true {
            usleep(50_000)
        }
        driver.close(isFinal: false)
        kill(server.processIdentifier, SIGKILL)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(text.contains("ALPN protocols selected: mqtt"), "\(text)")
    }

    @Test func `a socket of the machine is spoken to`() throws {
        let folder = try TemporaryFolder()
        let broker = try Broker(settings: ["listener 0 \(folder.path("broker.sock"))"])
        let subscriber = try Subscriber(broker, "beacond/gw1/#")
        let driver = Driver(port: 1, ["host": .text("unix:\(folder.path("broker.sock"))")])
        try driver.open()
        try driver.write(driver.transitions(1...300))
        #expect(subscriber.wait { $0.compactMap { $0["seq"] }.count == 300 })

        let nobody = Driver(port: 1, ["host": .text("unix:\(folder.path("nobody.sock"))")])
        let error = try #require(Driver.failure { try nobody.open() })
        #expect(error.description.contains("nobody.sock"))
        #expect(error.reason.contains("No such file"), "\(error)")
    }

    @Test(arguments: [false, true])
    func `a connection at rest costs no CPU`(isEncrypted: Bool) throws {
        let certificates = try Self.certificates.get()
        let (broker, port) = try secureBroker(certificates)
        let driver = Driver(port: isEncrypted ? port : broker.port, isEncrypted ? keys(certificates) : [:])
        try driver.open()
        try driver.idle(seconds: 0.2)
        func used() -> Double {
            var time = timespec()
            unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
        let before = used()
        try driver.idle(seconds: 3)
        // A loop without a wait would take all 3 s.
        #expect(used() - before < 0.1)
    }
}
