// SPDX-License-Identifier: Apache-2.0

import Glibc
import LinuxIO
public import Scanner

/// The right to scan or to advertise with an adapter, held by one process at a time: an flock(2) on a file in the runtime folder that names
/// the process. The kernel drops it with the process, however that ends.
public struct AdapterLock: ~Copyable {
    /// What one process at a time may do with an adapter; another may do the other.
    public enum Use: String, Sendable, CaseIterable {
        case scanning, advertising
    }

    /// Somebody else has it.
    public struct Held: Error, CustomStringConvertible {
        public var adapter: String
        public var use: Use
        /// nil when the file does not tell.
        public var process: Int32?

        public var description: String {
            let who = process.map { "process \($0)" } ?? "another process"
            let verb = use == .scanning ? "scans" : "advertises"
            return "\(adapter): \(who) of beacond \(verb) with it already; end that one first, or name another adapter"
        }
    }

    private let file: FileDescriptor?

    /// Takes the lock of a name such as `hci0` or the address of an adapter. ``AdapterLocks`` takes those of an adapter
    /// that is named in either way.
    ///
    /// Without any runtime folder nothing is locked: a system without one must not be kept from scanning.
    init(_ adapter: String, for use: Use) throws(Held) {
        if let held = Self.holder(of: adapter, for: use) { throw held }
        let path = RuntimeFolder.make().map { "\($0)/\(Self.file(adapter, use))" }
        guard let path, let file = Self.open(path) else {
            self.file = nil
            return
        }
        // Somebody who only looks (``holder(of:for:)``) has it for a moment.
        var tries = 5
        while flock(file.number, LOCK_EX | LOCK_NB) != 0, tries > 0 {
            tries -= 1
            usleep(10_000)
        }
        guard tries > 0 else { throw Held(adapter: adapter, use: use, process: Self.process(in: path)) }
        _ = ftruncate(file.number, 0)
        _ = try? file.write(Array("\(getpid())\n".utf8))
        self.file = consume file
    }

    /// A file that another user made can be locked all the same.
    private static func open(_ path: String) -> FileDescriptor? {
        if let file = try? FileDescriptor.open(path, O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o644) { return file }
        return try? FileDescriptor.open(path, O_RDONLY | O_NOFOLLOW)
    }

    /// What names an adapter may be a path. Of one that is too long for the name of a file the end counts, where paths
    /// differ.
    private static func file(_ adapter: String, _ use: Use) -> String {
        func replacing(_ sign: Character, by code: String, in text: String) -> String {
            text.split(separator: sign, omittingEmptySubsequences: false).joined(separator: code)
        }
        let step = replacing("/", by: "%2F", in: replacing("%", by: "%25", in: adapter))
        let name = String(decoding: step.utf8.suffix(200), as: UTF8.self)
        return use == .scanning ? "\(name).lock" : "\(name)-\(use).lock"
    }

    /// Who has the lock of an adapter, wherever a daemon may have put it; nil when nobody has.
    public static func holder(of adapter: String, for use: Use) -> Held? {
        for folder in RuntimeFolder.candidates {
            let path = "\(folder)/\(file(adapter, use))"
            guard let file = try? FileDescriptor.open(path, O_RDONLY | O_NOFOLLOW) else { continue }
            // Got it: nobody has. It is given back as the file is closed.
            if flock(file.number, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK {
                return Held(adapter: adapter, use: use, process: process(in: path))
            }
        }
        return nil
    }

    private static func process(in path: String) -> Int32? {
        Folder.text(of: path).flatMap { Int32($0) }
    }
}

/// The locks of all radios among some sources, held as long as this object lives.
///
/// An adapter has a lock for its index and one for its address, so that two processes exclude each other however they
/// name it. One that is named by its index takes both, as far as it is there; one that is named by its address takes that
/// of the address, because its index may change.
public final class AdapterLocks {
    private var held: [Lock] = []

    private final class Lock {
        let lock: AdapterLock
        init(_ lock: consuming AdapterLock) { self.lock = lock }
    }

    /// - Parameter sources: captures and scenarios among them need no lock; what is no source is left to whoever opens it.
    public init(_ sources: [String], for use: AdapterLock.Use = .scanning) throws(AgentError) {
        for text in sources {
            guard let source = try? SourceSpecification(text), case .controller(let controller) = source else {
                continue
            }
            for name in controller.identities {
                do { held.append(Lock(try AdapterLock(name, for: use))) } catch { throw .busy(error.description) }
            }
        }
    }

    /// Who scans or advertises with an adapter, whichever way it was named; nil when nobody does.
    public static func holder(of adapter: AdapterDescription, for use: AdapterLock.Use) -> AdapterLock.Held? {
        for name in adapter.identities {
            if var held = AdapterLock.holder(of: name, for: use) {
                held.adapter = adapter.name
                return held
            }
        }
        return nil
    }
}
