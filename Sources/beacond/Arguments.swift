// SPDX-License-Identifier: Apache-2.0

import Configuration

/// An option of a command.
struct Option: Sendable {
    /// `--config`.
    var name: String
    /// `FILE`; nil for an option without a value.
    var value: String?
    var summary: String

    init(_ name: String, _ value: String? = nil, _ summary: String) {
        self.name = name
        self.value = value
        self.summary = summary
    }
}

/// A command of the program: what it is called with, what its help says, and what it does.
struct Command: Sendable {
    var name: String
    /// What stands behind the name: `FILE`, `[KIND]` or nothing.
    var operands: String
    var operandCount: ClosedRange<Int>
    var summary: String
    var options: [Option]
    /// What the help says below the options; may be empty.
    var details: String
    var run: @Sendable (Arguments) throws(CommandError) -> ExitStatus

    var help: String {
        var text = "Usage: beacond \(name)\(options.isEmpty ? "" : " [OPTION]...")"
        if !operands.isEmpty { text += " \(operands)" }
        text += "\n\n\(summary)\n"
        if !options.isEmpty {
            text += "\nOptions:\n"
            let names = options.map { option in option.value.map { "\(option.name) \($0)" } ?? option.name }
            let width = names.map(\.count).max() ?? 0
            for (name, option) in zip(names, options) {
                text += "  \(name)\(String(repeating: " ", count: width - name.count + 2))\(option.summary)\n"
            }
        }
        if !details.isEmpty { text += "\n\(details)\n" }
        return text
    }
}

/// The words of a command line, sorted by a command's declaration.
struct Arguments {
    private(set) var operands: [String] = []
    private var values: [String: [String]] = [:]
    private let command: Command

    /// Sorts the words behind the command's name. `--name value` and `--name=value` are the same; behind `--` every
    /// word is an operand.
    init(_ words: ArraySlice<String>, for command: Command) throws(CommandError) {
        self.command = command
        var rest = words
        var onlyOperands = false
        while let word = rest.popFirst() {
            if onlyOperands || word == "-" || !word.hasPrefix("-") {
                operands.append(word)
                continue
            }
            if word == "--" {
                onlyOperands = true
                continue
            }
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard let option = command.options.first(where: { $0.name == name }) else {
                let near = Suggestion.nearest(to: name, in: command.options.map(\.name))
                throw usage(near.map { "unknown option \(name); did you mean \($0)?" } ?? "unknown option \(name)")
            }
            if option.value == nil {
                guard parts.count == 1 else { throw usage("\(name) takes no value") }
                values[name, default: []].append("")
            } else if parts.count == 2 {
                values[name, default: []].append(String(parts[1]))
            } else if let value = rest.popFirst() {
                values[name, default: []].append(value)
            } else {
                throw usage("\(name) needs a value: \(name) \(option.value ?? "")")
            }
        }
        guard command.operandCount.contains(operands.count) else {
            throw usage(
                operands.count > command.operandCount.upperBound
                    ? "unexpected \"\(operands[command.operandCount.upperBound])\""
                    : "expected \(command.operands)")
        }
    }

    func has(_ name: String) -> Bool { values[name] != nil }

    /// The value of an option; the last one when it was given several times.
    subscript(name: String) -> String? { values[name]?.last }

    /// All values of an option that may be given several times.
    func all(_ name: String) -> [String] { values[name] ?? [] }

    /// One of some words.
    func choice(_ name: String, of words: [String]) throws(CommandError) -> String? {
        guard let word = self[name] else { return nil }
        guard words.contains(word) else {
            throw usage("\(name) \(word): expected one of \(words.joined(separator: ", "))")
        }
        return word
    }

    func usage(_ message: String) -> CommandError {
        CommandError(.usage, "\(message)\nTry \"beacond \(command.name) --help\".")
    }
}
