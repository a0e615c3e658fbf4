// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
public import Configuration

/// A kind of sink with its type erased: a line of the executable's registry.
public struct SinkRegistration: Sendable {
    public let descriptor: SinkDescriptor
    /// Makes one, on the thread that will drive it.
    public let make: @Sendable (Values, SinkContext) throws(SinkError) -> any SinkBox

    public init<S: Sink & ~Copyable>(_ type: S.Type) {
        descriptor = S.descriptor
        make = { (values, context) throws(SinkError) in ConcreteSinkBox<S>(try S(values, context: context)) }
    }
}

/// A ``Sink`` behind one class reference, used by the thread that made it and no other.
public protocol SinkBox: AnyObject {
    func open() throws(SinkError)
    func write(_ batch: borrowing EventBatch) throws(SinkError)
    func idle(wake: Int32, until deadline: MonotonicTime) throws(SinkError)
    func reopen() throws(SinkError)
    func close(isFinal: Bool)
}

private final class ConcreteSinkBox<S: Sink & ~Copyable>: SinkBox {
    private var sink: S

    init(_ sink: consuming S) { self.sink = sink }

    func open() throws(SinkError) { try sink.open() }
    func write(_ batch: borrowing EventBatch) throws(SinkError) { try sink.write(batch) }
    func idle(wake: Int32, until deadline: MonotonicTime) throws(SinkError) {
        try sink.idle(wake: wake, until: deadline)
    }
    func reopen() throws(SinkError) { try sink.reopen() }
    func close(isFinal: Bool) { sink.close(isFinal: isFinal) }
}

/// The sinks that this program was built with.
public struct SinkRegistry: Sendable {
    public let registrations: [SinkRegistration]

    /// - Precondition: no kind occurs twice; that is a mistake in the program.
    public init(_ registrations: [SinkRegistration]) {
        let kinds = registrations.map(\.descriptor.kind)
        precondition(Set(kinds).count == kinds.count, "two sinks of one kind in the registry: \(kinds)")
        self.registrations = registrations
    }

    public subscript(kind: String) -> SinkRegistration? {
        registrations.first { $0.descriptor.kind == kind }
    }
}
