// SPDX-License-Identifier: Apache-2.0

/// How the program ends, in the numbers of sysexits.h that scripts and service managers know.
enum ExitStatus: Int32 {
    case success = 0
    /// Something failed that has no number of its own; the message says what.
    case failure = 1
    /// The command line is wrong (EX_USAGE).
    case usage = 64
    /// A file that was named is missing or cannot be read (EX_NOINPUT).
    case noInput = 66
    /// No radio, or no daemon to ask (EX_UNAVAILABLE).
    case noRadio = 69
    /// An output file could not be made or written (EX_IOERR).
    case inputOutput = 74
    /// Another process uses the adapter or the control socket; it may work later (EX_TEMPFAIL).
    case temporaryFailure = 75
    /// The configuration is wrong (EX_CONFIG).
    case configuration = 78
}

/// Why a command could not do its work: what is printed, and how the program ends.
struct CommandError: Error {
    var status: ExitStatus
    /// Cause and cure. Lines of a configuration's problems stand as they are, without the program's name in front.
    var message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }
}
