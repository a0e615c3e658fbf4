// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A word that a person chose (a beacon's alias, a region, an adapter) as a number, so that events stay fixed-size
/// values.
public struct Name: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// No name.
    public static let none = Name(rawValue: 0)
}

/// The words behind ``Name``, for the life of the process. It only grows, by the distinct names of all configurations
/// that were loaded; 65,535 at most, after which a new word gets ``Name/none``.
public final class NameTable: Sendable {
    private struct State {
        var words = [""]
        var numbers: [String: UInt16] = ["": 0]
    }
    private let state = Mutex(State())

    public init() {}

    /// The name of a word, a new one when it was never seen.
    public func intern(_ word: String) -> Name {
        state.withLock { state in
            if let number = state.numbers[word] { return Name(rawValue: number) }
            guard state.words.count <= Int(UInt16.max) else { return .none }
            let number = UInt16(state.words.count)
            state.words.append(word)
            state.numbers[word] = number
            return Name(rawValue: number)
        }
    }

    /// The word; empty for ``Name/none``.
    public subscript(name: Name) -> String {
        state.withLock { Int(name.rawValue) < $0.words.count ? $0.words[Int(name.rawValue)] : "" }
    }
}

/// What is needed to spell an event: the formats and the names of this process.
public struct Vocabulary: Sendable {
    public let formats: FormatCatalog
    public let names: NameTable

    public init(formats: FormatCatalog, names: NameTable) {
        self.formats = formats
        self.names = names
    }
}
