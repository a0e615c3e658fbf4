// SPDX-License-Identifier: Apache-2.0

public import LinuxIO

/// Why the agent cannot run.
public enum AgentError: Error, CustomStringConvertible {
    case system(SystemError)
    /// A source that is a file.
    case input(String)
    /// A source that is a radio.
    case radio(String)
    case configuration(String)
    case store(String)
    /// Another process has what this one needs.
    case busy(String)

    public var description: String {
        switch self {
        case .system(let error): error.description
        case .input(let text), .radio(let text), .configuration(let text), .store(let text),
            .busy(let text):
            text
        }
    }
}
