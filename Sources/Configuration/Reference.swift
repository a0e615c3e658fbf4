// SPDX-License-Identifier: Apache-2.0

/// The key tables of the documentation, as Markdown.
public enum Reference {
    /// One table for each object, with headings of the third level.
    public static func markdown(for section: Section) -> String {
        tables(of: section.keys, at: "", title: "The top of the file")
    }

    private static func tables(of keys: [AnyKey], at path: String, title: String) -> String {
        var text = "### \(title)\n\n"
        if keys.isEmpty {
            text += "No keys.\n"
        } else {
            text += "| key | value | default | meaning |\n| --- | --- | --- | --- |\n"
            for key in keys { text += row(key) }
        }
        for key in keys {
            let inner = path.isEmpty ? key.name : "\(path).\(key.name)"
            text += tables(inside: key.shape, at: inner)
        }
        return text
    }

    private static func tables(inside shape: Shape, at path: String) -> String {
        switch shape {
        case .section(let section):
            return "\n" + tables(of: section.keys, at: path, title: "`\(path)`")
        case .list(let shape, _):
            return tables(inside: shape, at: "\(path)[]")
        case .plugin(let common, let kinds):
            let section = common.pluginSection(kinds: kinds.map(\.name), of: nil)
            var text = "\n" + tables(of: section.keys, at: path, title: "`\(path)`")
            for kind in kinds {
                let config = "\(path).\(PluginKey.config)"
                text += "\n" + tables(of: kind.section.keys, at: config, title: "`\(config)` of kind `\(kind.name)`")
            }
            return text
        default: return ""
        }
    }

    private static func row(_ key: AnyKey) -> String {
        let fallback =
            if key.mustBeGiven { "required" } else if let fallback = key.fallback { "`\(fallback.json)`" } else { "" }
        let cells = ["`\(key.name)`", key.shape.expectation, fallback, key.summary]
        return "| \(cells.map(cell).joined(separator: " | ")) |\n"
    }

    /// Text that does not end a cell.
    private static func cell(_ text: String) -> String {
        text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
    }
}
