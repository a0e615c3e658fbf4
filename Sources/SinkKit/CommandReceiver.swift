// SPDX-License-Identifier: Apache-2.0

/// The way back: has the gateway do what a sink was sent from outside, through the verbs of the control socket.
public struct CommandReceiver: Sendable {
    /// Gets the answer, one JSON object, on the thread of the host's loop: it must not block.
    public typealias Answer = @Sendable ([UInt8]) -> Void

    /// Hands over a request, an object with `verb` and its parameters as `docs/control.md` has them. Returns at once and
    /// may be called from any thread; the octets may be anything.
    ///
    /// - Returns: false when too many requests wait already; nothing comes of this one then.
    public let submit: @Sendable (_ request: [UInt8], _ answer: @escaping Answer) -> Bool

    /// Counts a request that the sink itself refused. May be called from any thread.
    public let noteRefusal: @Sendable () -> Void

    public init(
        submit: @escaping @Sendable (_ request: [UInt8], _ answer: @escaping Answer) -> Bool,
        noteRefusal: @escaping @Sendable () -> Void = {}
    ) {
        self.submit = submit
        self.noteRefusal = noteRefusal
    }
}
