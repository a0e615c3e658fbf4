// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// A commented configuration to start with: every key with its default or an example, and a comment in front of it.
public enum Sample {
    /// The document, laid out, with a newline at the end. The reader accepts it as it stands.
    ///
    /// - Parameters:
    ///   - introduction: the comment at the top.
    ///   - kinds: the plugins to show, in every list of plugins; nil for all of them.
    public static func text(for section: Section, introduction: String, kinds: [String]? = nil) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("//", introduction)
            writeMembers(section.keys, kinds, isCommented: true, into: &writer)
        }
        return JSONLayout.indent(writer.bytes)
    }

    private static func writeMembers(
        _ keys: [AnyKey], _ kinds: [String]?, isCommented: Bool, into writer: inout JSONWriter
    ) {
        for key in keys {
            if isCommented { writer.member("// \(key.name)", comment(on: key)) }
            if let fallback = key.fallback {
                writer.key(key.name)
                fallback.write(into: &writer)
            } else if let example = key.exampleNode {
                writer.key(key.name)
                example.write(into: &writer)
            } else {
                writeContainer(key, kinds, isCommented: isCommented, into: &writer)
            }
        }
    }

    private static func writeContainer(
        _ key: AnyKey, _ kinds: [String]?, isCommented: Bool, into writer: inout JSONWriter
    ) {
        switch key.shape {
        case .section(let section):
            writer.object(key.name) { writeMembers(section.keys, kinds, isCommented: isCommented, into: &$0) }
        case .list(of: .plugin(let common, let all), _):
            writer.key(key.name)
            writer.beginArray()
            let shown = all.filter { kinds?.contains($0.name) ?? true }
            for (index, kind) in shown.enumerated() {
                writer.object { writer in
                    writer.member("//", kind.summary)
                    writer.member(PluginKey.kind, kind.name)
                    // What every kind has is explained once.
                    writeMembers(common.keys, kinds, isCommented: index == 0, into: &writer)
                    guard !kind.section.keys.isEmpty else { return }
                    writer.object(PluginKey.config) {
                        writeMembers(kind.section.keys, kinds, isCommented: true, into: &$0)
                    }
                }
            }
            writer.endArray()
        default: break
        }
    }

    /// The summary, what is expected, and whether the key may be left out.
    private static func comment(on key: AnyKey) -> String {
        var comment = key.summary
        switch key.shape {
        case .section, .list(of: .plugin, _): return comment
        case .list(of: .section(let section), _):
            comment += " Keys of an entry: \(section.keys.map(\.name).joined(separator: ", "))."
        default: comment += " Expected: \(key.shape.expectation)."
        }
        if key.isRequired { comment += " Required." } else if key.fallback == nil { comment += " Optional." }
        return comment
    }
}
