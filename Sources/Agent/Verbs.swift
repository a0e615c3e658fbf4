// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration

/// One thing that a running daemon can be asked or told, over the control socket or as a command from elsewhere.
struct Verb {
    /// `lower_snake_case`.
    let name: String
    /// One sentence that ends in a period.
    let summary: String
    /// What may be said with it.
    let parameters: Section
    /// Does it, on the loop's thread.
    let run: (Values) -> VerbAnswer

    init(_ name: String, _ summary: String, _ parameters: [AnyKey] = [], run: @escaping (Values) -> VerbAnswer) {
        self.name = name
        self.summary = summary
        self.parameters = Section(parameters)
        self.run = run
    }
}

/// What came of a verb.
enum VerbAnswer {
    /// Each of these writes the members of one object; the last one ends the answer.
    case lines([(inout JSONWriter) -> Void])
    /// It could not be done, and why.
    case failed(String)
    /// From now on, for this time, every event that is wanted.
    case events(EventWish, TimeInterval)
    /// After this time, the lines that it then makes. Nobody else waits meanwhile.
    case later(TimeInterval, () -> [(inout JSONWriter) -> Void])
}

/// Which events somebody wants to see.
enum EventWish: String, CaseIterable, Sendable {
    case all, sightings, transitions

    func includes(_ event: borrowing Event) -> Bool {
        switch self {
        case .all: true
        case .sightings: !event.isTransition
        case .transitions: event.isTransition
        }
    }
}

/// The verbs of a daemon.
struct VerbTable {
    let verbs: [Verb]

    init(_ verbs: [Verb]) { self.verbs = verbs }

    /// A request as it was read.
    struct Request {
        var id: Int64?
        var answer: VerbAnswer
    }

    private static let id = Key<Int64?>.optionalInteger(
        "id", in: 0...(1 << 53), "A number that stands in every line of the answer.")

    /// Reads a request, does what it asks, and says what came of it. Never traps, whatever the octets are.
    func answer(_ line: [UInt8]) -> Request {
        let document: Document
        do { document = try Document(line) } catch {
            return Request(id: nil, answer: .failed("no JSON: \(error.text)"))
        }
        var id: Int64?
        if case .integer(let number) = document.root["id"]?.content { id = number }
        let names = verbs.map(\.name)
        guard case .text(let word) = document.root["verb"]?.content else {
            return Request(
                id: id, answer: .failed("expected an object with \"verb\": one of \(names.joined(separator: ", "))"))
        }
        guard let verb = verbs.first(where: { $0.name == word }) else {
            let hint = Suggestion.nearest(to: word, in: names).map { "did you mean \($0)?" }
            return Request(
                id: id, answer: .failed("unknown verb; \(hint ?? "the verbs are \(names.joined(separator: ", "))")"))
        }
        let common = [
            Key<String>.choice("verb", default: word, of: names, "What to do.").declaration, Self.id.declaration,
        ]
        let section = Section(common + verb.parameters.keys, checks: verb.parameters.checks)
        do {
            return Request(
                id: id, answer: verb.run(try ConfigurationReader.read(line, file: "request", section: section)))
        } catch {
            return Request(
                id: id, answer: .failed(error.problems.map { "\($0.path): \($0.text)" }.joined(separator: "; ")))
        }
    }
}
