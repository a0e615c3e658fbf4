// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport

/// An authority of one's own with a certificate for a broker at 127.0.0.1 and one for a gateway, made by openssl.
struct Certificates {
    enum Failure: Error {
        case openssl([String])
    }

    static let openssl = URL(filePath: "/usr/bin/openssl")

    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        try run(["req", "-x509"] + key + ["-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test", "-days", "2"])
        for (name, alternative) in [("broker", "IP:127.0.0.1"), ("gateway", "DNS:gw1"), ("elsewhere", "DNS:elsewhere")]
        {
            try run(
                ["req", "-new"] + key + [
                    "-keyout", "\(name).key", "-out", "\(name).csr", "-subj", "/CN=\(name)", "-addext",
                    "subjectAltName=\(alternative)",
                ])
            try run([
                "x509", "-req", "-in", "\(name).csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                "-copy_extensions", "copy", "-days", "2", "-out", "\(name).crt",
            ])
        }
    }

    func path(_ name: String) -> String { folder.path(name) }

    /// Makes `later.crt` for the broker's key, which is valid from then on.
    func makeCertificate(validFrom date: Date) throws {
        _ = try folder.file(
            "ca.conf",
            """
            [ca]
            default_ca = test
            [test]
            database = \(path("index.txt"))
            serial = \(path("serial"))
            new_certs_dir = \(folder.path)
            default_md = sha256
            policy = any
            copy_extensions = copy
            [any]
            commonName = supplied
            """)
        _ = try folder.file("index.txt", "")
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "UTC")
        format.dateFormat = "yyyyMMddHHmmss'Z'"
        try run([
            "ca", "-batch", "-notext", "-create_serial", "-config", "ca.conf", "-cert", "ca.crt", "-keyfile", "ca.key",
            "-in", "broker.csr", "-out", "later.crt", "-startdate", format.string(from: date), "-enddate",
            format.string(from: date.addingTimeInterval(86_400)),
        ])
    }

    private func run(_ arguments: [String]) throws {
        let process = Process()
        process.executableURL = Self.openssl
        process.arguments = arguments
        process.currentDirectoryURL = folder.url
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure.openssl(arguments) }
    }
}
