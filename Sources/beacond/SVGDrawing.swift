// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// Writes the few shapes of SVG that a plot needs. Every text is escaped.
struct SVGDrawing {
    private var body = ""
    private let head: String

    init(width: Double, height: Double, style: String) {
        let (width, height) = (Self.number(width), Self.number(height))
        head = """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(height)" viewBox="0 0 \(width) \(height)" role="img">
            <style>
            \(style)
            </style>

            """
    }

    var text: String { "\(head)\(body)</svg>\n" }

    mutating func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ style: String, hint: String? = nil) {
        let places =
            "x1=\"\(Self.number(x1))\" y1=\"\(Self.number(y1))\" x2=\"\(Self.number(x2))\" y2=\"\(Self.number(y2))\""
        element("line", "class=\"\(style)\" \(places)", hint)
    }

    mutating func rectangle(
        _ x: ClosedRange<Double>, _ y: ClosedRange<Double>, _ style: String, hint: String? = nil
    ) {
        let place = "x=\"\(Self.number(x.lowerBound))\" y=\"\(Self.number(y.lowerBound))\""
        let width = Self.number(x.upperBound - x.lowerBound)
        let height = Self.number(y.upperBound - y.lowerBound)
        element("rect", "class=\"\(style)\" \(place) width=\"\(width)\" height=\"\(height)\"", hint)
    }

    /// Nothing when there are less than two points.
    mutating func path(_ points: [(Double, Double)], _ style: String) {
        guard points.count > 1 else { return }
        let list = points.map { "\(Self.number($0.0)),\(Self.number($0.1))" }.joined(separator: " ")
        element("polyline", "class=\"\(style)\" points=\"\(list)\"", nil)
    }

    mutating func text(
        _ text: String, _ x: Double, _ y: Double, _ style: String, anchor: String = "start", isVertical: Bool = false,
        hint: String? = nil
    ) {
        let place = "x=\"\(Self.number(x))\" y=\"\(Self.number(y))\""
        let turn = isVertical ? " transform=\"rotate(-90 \(Self.number(x)) \(Self.number(y)))\"" : ""
        let title = hint.map { "<title>\(Self.escaped($0))</title>" } ?? ""
        body +=
            "<text class=\"\(style)\" \(place) text-anchor=\"\(anchor)\"\(turn)>\(title)\(Self.escaped(text))</text>\n"
    }

    private mutating func element(_ name: String, _ attributes: String, _ hint: String?) {
        body +=
            hint.map { "<\(name) \(attributes)><title>\(Self.escaped($0))</title></\(name)>\n" }
            ?? "<\(name) \(attributes)/>\n"
    }

    /// For the inside of an element of XML or HTML.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    private static func number(_ value: Double) -> String {
        TerminalText.number(value, decimals: value == value.rounded() ? 0 : 1)
    }
}

/// From values to places on a drawing.
struct PlotScale {
    let values: ClosedRange<Double>
    private let beginning: Double
    private let end: Double

    /// - Parameters:
    ///   - beginning: the place of the least value.
    ///   - end: the place of the greatest.
    init(_ values: ClosedRange<Double>, from beginning: Double, to end: Double) {
        self.values = values
        self.beginning = beginning
        self.end = end
    }

    subscript(value: Double) -> Double {
        beginning + (value - values.lowerBound) / (values.upperBound - values.lowerBound) * (end - beginning)
    }

    var extent: ClosedRange<Double> { min(beginning, end)...max(beginning, end) }

    /// Round values, at most about `count`.
    func ticks(_ count: Int) -> [Double] {
        let least = (values.upperBound - values.lowerBound) / Double(count)
        var step = 0.001
        let factors = [2, 2.5, 2]
        var index = 0
        while step < least {
            step *= factors[index % 3]
            index += 1
        }
        return multiples(of: step, from: 0)
    }

    /// Round moments for values that are seconds, of which the first is `offset` seconds after midnight.
    func timeTicks(from offset: Double, atMost count: Int) -> [Double] {
        let steps = [
            0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600,
            43_200,
        ]
        let least = (values.upperBound - values.lowerBound) / Double(count)
        let step = steps.first { $0 >= least } ?? (least / 86_400).rounded(.up) * 86_400
        return multiples(of: step, from: offset)
    }

    private func multiples(of step: Double, from offset: Double) -> [Double] {
        var ticks: [Double] = []
        var number = ((values.lowerBound + offset) / step).rounded(.up)
        while number * step - offset <= values.upperBound {
            ticks.append(number * step - offset)
            number += 1
        }
        return ticks
    }
}
