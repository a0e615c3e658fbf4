// SPDX-License-Identifier: Apache-2.0

/// Finds what a person probably meant.
public enum Suggestion {
    /// The candidate nearest to what was written; nil when none is near enough to be meant. The first of equals wins.
    ///
    /// Near is a third of the longer word's characters, at least one, without regard to case, dashes and underscores:
    /// `clientID` means `client_id`, and `qoss` means `qos`, but `pin` does not mean `qos`.
    public static func nearest(to word: String, in candidates: [String]) -> String? {
        // Longer than any name that exists, and a bound for the work.
        guard word.utf8.count <= 64 else { return nil }
        let wanted = folded(word)
        var best: (candidate: String, distance: Int)?
        for candidate in candidates {
            let name = folded(candidate)
            let distance = distance(wanted, name)
            guard distance <= max(1, max(wanted.count, name.count) / 3), distance < max(wanted.count, name.count),
                distance < best?.distance ?? .max
            else { continue }
            best = (candidate, distance)
        }
        return best?.candidate
    }

    /// What is said of a word that is none of the candidates: `unknown qos "x"; expected one of: …`.
    ///
    /// - Parameter kind: what the word should be, one word.
    public static func complaint(about word: String, kind: String, in candidates: [String]) -> String {
        "unknown \(kind) \(quoted(word)); \(hint(for: word, in: candidates, all: "expected one of"))"
    }

    /// A clause that helps: the nearest candidate, else all of them.
    static func hint(for word: String, in candidates: [String], all: String) -> String {
        if let nearest = nearest(to: word, in: candidates) { return "did you mean \(quoted(nearest))?" }
        return "\(all): \(candidates.map(quoted).joined(separator: ", "))"
    }

    private static func folded(_ word: String) -> [UInt8] {
        word.lowercased().utf8.filter { $0 != UInt8(ascii: "_") && $0 != UInt8(ascii: "-") }
    }

    /// The fewest insertions, deletions, substitutions and swaps of neighbours between two words.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for i in 0..<left.count {
            var row = [i + 1]
            for j in 0..<right.count {
                var cost = min(row[j], last[j + 1]) + 1
                cost = min(cost, last[j] + (left[i] == right[j] ? 0 : 1))
                if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
                    cost = min(cost, beforeLast[j - 1] + 1)
                }
                row.append(cost)
            }
            (beforeLast, last) = (last, row)
        }
        return last[right.count]
    }
}
