// SPDX-License-Identifier: Apache-2.0

import Configuration

/// How the user wants a topic to be spelled: levels that stand as they are, and levels that are filled in.
///
/// What is filled in is always a whole level, so that two values side by side cannot be taken for two others.
struct TopicTemplate: Equatable {
    enum Level: Equatable {
        case literal(String)
        case filled(Field)
    }

    enum Field: String, CaseIterable {
        case gateway, format
        /// All fields of a beacon's identity, a level each.
        case identity
        case uuid, major, minor, alias, region
    }

    let levels: [Level]

    /// nil when the text is no template, or has fields that are not among `fields`.
    init?(_ text: String, _ fields: [Field]) {
        var levels: [Level] = []
        for level in text.split(separator: "/", omittingEmptySubsequences: false) {
            if level.hasPrefix("{"), level.hasSuffix("}") {
                guard let field = Field(rawValue: String(level.dropFirst().dropLast())), fields.contains(field) else {
                    return nil
                }
                levels.append(.filled(field))
            } else {
                guard !level.isEmpty, level.utf8.allSatisfy({ isUnreserved($0) || $0 == UInt8(ascii: ".") }) else {
                    return nil
                }
                levels.append(.literal(String(level)))
            }
        }
        self.levels = levels
    }

    func has(_ field: Field) -> Bool { levels.contains(.filled(field)) }

    /// Alike for templates that may spell the same topic for two things of different kinds.
    var shape: [Level] {
        levels.map { level in
            switch level {
            case .literal, .filled(.gateway), .filled(.format): level
            case .filled: .filled(.region)
            }
        }
    }

    // MARK: The kinds

    static let gatewayFields: [Field] = [.gateway]
    static let beaconFields: [Field] = [.gateway, .format, .identity, .uuid, .major, .minor, .alias]
    static let regionFields: [Field] = [.gateway, .region]

    static func gateway(_ text: String) -> TopicTemplate? { kind(text, gatewayFields) { _ in true } }

    static func beacon(_ text: String) -> TopicTemplate? {
        kind(text, beaconFields) {
            $0.has(.identity) || $0.has(.alias) || $0.has(.uuid) && $0.has(.major) && $0.has(.minor)
        }
    }

    static func region(_ text: String) -> TopicTemplate? { kind(text, regionFields) { $0.has(.region) } }

    /// Two gateways at one broker would write over each other's states without their id.
    private static func kind(
        _ text: String, _ fields: [Field], _ tellsApart: (TopicTemplate) -> Bool
    ) -> TopicTemplate? {
        guard let template = TopicTemplate(text, fields), template.has(.gateway), tellsApart(template) else {
            return nil
        }
        return template
    }

    /// The pattern of the same rule for the JSON Schema.
    ///
    /// - Parameters:
    ///   - needed: lookaheads for the fields that must be there besides the gateway.
    ///   - needsGateway: the gateway must be there.
    static func pattern(_ fields: [Field], needed: String = "", needsGateway: Bool = true) -> String {
        let level = "([A-Za-z0-9_.-]+|\\{(\(fields.map(\.rawValue).joined(separator: "|")))\\})"
        let gateway = needsGateway ? "(?=.*\\{gateway\\})" : ""
        return "^\(gateway)\(needed)\(level)(/\(level))*$"
    }
}
