// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconModel
import Configuration

extension Arguments {
    /// A length of time; nil when the option is not given.
    func interval(_ name: String) throws(CommandError) -> TimeInterval? {
        guard let text = self[name] else { return nil }
        guard let interval = DurationText.interval(text), interval > .zero else {
            throw usage("\(name) \(text): expected a time with its unit, as in 10s")
        }
        return interval
    }

    /// A whole number; nil when the option is not given.
    func number<Number: FixedWidthInteger>(
        _ name: String, _ type: Number.Type = Number.self
    ) throws(CommandError)
        -> Number?
    {
        guard let text = self[name] else { return nil }
        guard let number = Number(text) else {
            throw usage("\(name) \(text): expected a whole number from \(Number.min) to \(Number.max)")
        }
        return number
    }

    /// The octets of a UUID; nil when the option is not given.
    func uuid(_ name: String) throws(CommandError) -> [UInt8]? {
        guard let text = self[name] else { return nil }
        guard let octets = UUIDText.octets(text) else {
            throw usage("\(name) \(text): expected a UUID such as fda50693-a4e2-4fb1-afcf-c6eb07647825")
        }
        return octets
    }
}

extension CommandError {
    init(_ error: AgentError) {
        let status: ExitStatus =
            switch error {
            case .system: .failure
            case .input: .noInput
            case .radio: .noRadio
            case .configuration: .configuration
            case .store: .inputOutput
            case .busy: .temporaryFailure
            }
        self.init(status, error.description)
    }

    init(_ failure: ControlConnection.Failure) {
        switch failure {
        case .noDaemon: self.init(.noRadio, failure.description)
        case .refused, .lost: self.init(.failure, failure.description)
        }
    }
}
