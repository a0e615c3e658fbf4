// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// A timeline as a drawing: above how strong the beacon was heard, below how long it was silent and when that would
/// have been an exit.
struct TimelinePlot {
    private static let width = 1100.0
    private static let height = 620.0
    private static let left = 70.0
    private static let right = 1080.0
    /// Seconds, 200 years: less than fit into nanoseconds.
    private static let longestSpan = 6.3e9

    private let timeline: BeaconTimeline
    private let time: PlotScale
    private let strength: PlotScale
    private let silence: PlotScale
    private var drawing: SVGDrawing

    init(_ timeline: BeaconTimeline) {
        self.timeline = timeline
        let span = max(timeline.seconds(timeline.end), 0.001)
        time = PlotScale(0...span, from: Self.left, to: Self.right)
        let strengths = timeline.samples.compactMap(\.strengths)
        let low = strengths.map(\.lowerBound).min() ?? -100
        let high = strengths.map(\.upperBound).max() ?? -40
        strength = PlotScale(Double(low - 5)...Double(high + 5), from: 330, to: 110)
        silence = PlotScale(0...Self.longest(timeline) * 1.1, from: 550, to: 380)
        drawing = SVGDrawing(width: Self.width, height: Self.height, style: Self.style)
        draw()
    }

    var svg: String { drawing.text }

    /// A page that shows the drawing and the table below it.
    static func page(_ svg: String, _ table: String) -> String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head><meta charset="utf-8"><title>beacond explain</title>
        <style>
        :root { color-scheme: light dark; }
        body { margin: 1rem auto; max-width: 1100px; font-family: sans-serif; background: #fff; color: #1f2933; }
        svg { width: 100%; height: auto; }
        pre { overflow-x: auto; font-size: 0.85rem; }
        @media (prefers-color-scheme: dark) { body { background: #14181d; color: #dde3ea; } }
        </style></head>
        <body>
        \(svg)<pre>\(SVGDrawing.escaped(table))</pre>
        </body>
        </html>

        """
    }

    private static let style = """
        text { font: 12px sans-serif; fill: #1f2933; }
        .title { font-size: 17px; font-weight: bold; }
        .faint { fill: #5b6773; }
        .ground { fill: #ffffff; }
        .grid { stroke: #dfe4ea; stroke-width: 1; }
        .band { stroke: #9aa5b1; stroke-width: 1; stroke-dasharray: 2 4; }
        .stay { fill: #d9f0e3; }
        .blind { fill: #c9ced6; }
        .heard { stroke: #5b8fd6; stroke-width: 4; stroke-linecap: round; opacity: 0.55; }
        .filtered { stroke: #0b3d91; stroke-width: 1.8; fill: none; }
        .silence { stroke: #6b4fa0; stroke-width: 1.2; fill: none; }
        .exit { stroke: #c2410c; stroke-width: 1.8; fill: none; stroke-dasharray: 7 3; }
        .enter { stroke: #15803d; stroke-width: 1.5; }
        .left { stroke: #b91c1c; stroke-width: 1.5; }
        .other { stroke: #8a6d00; stroke-width: 1; stroke-dasharray: 3 3; }
        @media (prefers-color-scheme: dark) {
        text { fill: #dde3ea; }
        .faint { fill: #9aa5b1; }
        .ground { fill: #14181d; }
        .grid { stroke: #2b333d; }
        .band { stroke: #5b6773; }
        .stay { fill: #17352a; }
        .blind { fill: #3a424d; }
        .heard { stroke: #7fb0f5; }
        .filtered { stroke: #d3e3ff; }
        .silence { stroke: #b79cf0; }
        .exit { stroke: #ff9a62; }
        .enter { stroke: #4ade80; }
        .left { stroke: #f87171; }
        .other { stroke: #e0c050; }
        }
        """

    /// Seconds: the longest silence or exit time that is drawn.
    private static func longest(_ timeline: BeaconTimeline) -> Double {
        let times = [timeline.beginning] + timeline.samples.map(\.time) + [timeline.end]
        let silences = zip(times, times.dropFirst()).map { ($1 - $0).seconds }
        let exits = (timeline.samples.compactMap(\.exit) + timeline.decisions.compactMap(\.exit)).map(\.time)
        return max(1, (silences + exits).max() ?? 1)
    }

    // MARK: Drawing

    private mutating func draw() {
        drawing.rectangle(0...Self.width, 0...Self.height, "ground")
        for (line, text) in TimelineText.title(timeline).enumerated() {
            drawing.text(text, Self.left, 26 + Double(line) * 18, line == 0 ? "title" : "faint")
        }
        for stay in timeline.stays { shade(stay, "stay", "present") }
        for blind in timeline.blindTimes { shade(blind, "blind", "no radio listened") }
        drawAxes()
        drawStrengths()
        drawSilences()
        drawDecisions()
        drawLegend()
    }

    private func x(_ moment: MonotonicTime) -> Double { time[timeline.seconds(moment)] }

    private mutating func shade(_ range: ClosedRange<MonotonicTime>, _ style: String, _ hint: String) {
        for panel in [strength, silence] {
            drawing.rectangle(x(range.lowerBound)...x(range.upperBound), panel.extent, style, hint: hint)
        }
    }

    private mutating func drawAxes() {
        for (scale, title) in [(strength, "signal strength (dBm)"), (silence, "not heard for (s)")] {
            for value in scale.ticks(6) {
                drawing.line(Self.left, scale[value], Self.right, scale[value], "grid")
                let decimals = value == value.rounded() ? 0 : 1
                drawing.text(
                    TerminalText.number(value, decimals: decimals), Self.left - 8, scale[value] + 4, "faint",
                    anchor: "end")
            }
            drawing.text(
                title, 18, (scale.extent.lowerBound + scale.extent.upperBound) / 2, "", anchor: "middle",
                isVertical: true)
        }
        for bound in [-50.0, -60, -75, -90] where strength.values.contains(bound) {
            drawing.line(Self.left, strength[bound], Self.right, strength[bound], "band")
            let word = SignalQuality(strength: Float(bound)).word
            drawing.text("\(word) from here up", Self.right - 4, strength[bound] - 4, "faint", anchor: "end")
        }
        let offset = Double(timeline.beginning.nanoseconds % 86_400_000_000_000) / 1e9
        for second in time.timeTicks(from: offset, atMost: 9) {
            let place = time[second]
            for panel in [strength, silence] {
                drawing.line(place, panel.extent.lowerBound, place, panel.extent.upperBound, "grid")
            }
            let moment =
                timeline.beginning + TimeInterval(nanoseconds: Int64((min(second, Self.longestSpan) * 1e9).rounded()))
            let isFine = time.values.upperBound < 8
            drawing.text(BeaconTimeline.clock(moment, milliseconds: isFine), place, 570, "faint", anchor: "middle")
        }
        drawing.text(
            "time of day on \(BeaconTimeline.date(timeline.beginning)), UTC", (Self.left + Self.right) / 2, 592, "",
            anchor: "middle")
    }

    private mutating func drawStrengths() {
        var isDrawn: Set<[Int]> = []
        for sample in timeline.samples {
            guard let strengths = sample.strengths else { continue }
            let (low, high) = (strength[Double(strengths.lowerBound)], strength[Double(strengths.upperBound)])
            let place = x(sample.time)
            // What falls on the same points is drawn once: a day of sightings has no more of them than an hour.
            guard isDrawn.insert([Int(place * 2), Int(low), Int(high)]).inserted else { continue }
            drawing.line(place, low, place, high, "heard")
        }
        var path: [(Double, Double)] = []
        var last: BeaconTimeline.Sample?
        for sample in timeline.samples {
            guard let filtered = sample.filtered else { continue }
            // The line does not go on over a time in which the beacon was gone.
            if let last,
                timeline.decisions.contains(where: {
                    ($0.kind == .exit || $0.kind == .forgotten) && $0.time > last.time && $0.time <= sample.time
                })
            {
                drawing.path(path, "filtered")
                path.removeAll()
            }
            let point = (x(sample.time), strength[filtered])
            if let end = path.last, Int(end.0 * 2) == Int(point.0 * 2), path.count > 1 { path.removeLast() }
            path.append(point)
            last = sample
        }
        drawing.path(path, "filtered")
    }

    private mutating func drawSilences() {
        guard let first = timeline.samples.first else { return }
        let base = silence[0]
        var path = [(x(first.time), base)]
        let times = timeline.samples.map(\.time) + [max(timeline.end, first.time)]
        for (earlier, later) in zip(times, times.dropFirst()) {
            let peak = (x(later), silence[(later - earlier).seconds])
            // Of the peaks in half a point the highest is drawn.
            if path.count > 2, Int(path[path.count - 2].0 * 2) == Int(peak.0 * 2) {
                if peak.1 < path[path.count - 2].1 { path[path.count - 2] = peak }
                continue
            }
            path += [peak, (peak.0, base)]
        }
        drawing.path(path, "silence")
        var rules: [(Double, Double)] = []
        for (sample, next) in zip(timeline.samples, times.dropFirst()) {
            guard let rule = sample.exit else {
                drawing.path(rules, "exit")
                rules.removeAll()
                continue
            }
            let left = timeline.decisions.first { $0.kind == .exit && $0.time > sample.time && $0.time <= next }
            let y = silence[rule.time]
            if rules.last?.1 != y { rules.append((x(sample.time), y)) }
            // Only the end of a level stretch is kept.
            if rules.count > 1, rules[rules.count - 2].1 == y { rules.removeLast() }
            rules.append((x(left?.time ?? next), y))
            if left != nil {
                drawing.path(rules, "exit")
                rules.removeAll()
            }
        }
        drawing.path(rules, "exit")
        // A recorded run tells the exit time only with the exit.
        guard !timeline.samples.contains(where: { $0.exit != nil }) else { return }
        for decision in timeline.decisions where decision.kind == .exit {
            guard let rule = decision.exit else { continue }
            let since = decision.time + TimeInterval(nanoseconds: Int64(-rule.time * 1e9))
            drawing.path([(x(since), silence[rule.time]), (x(decision.time), silence[rule.time])], "exit")
        }
    }

    private mutating func drawDecisions() {
        let shown = timeline.decisions.filter { $0.kind != .end && $0.kind != .region }
        for decision in shown {
            let place = x(decision.time)
            let style =
                switch decision.kind {
                case .enter: "enter"
                case .exit, .forgotten: "left"
                default: "other"
                }
            drawing.line(place, 96, place, strength.extent.upperBound, style, hint: Self.hint(decision))
            drawing.line(
                place, silence.extent.lowerBound, place, silence.extent.upperBound, style, hint: Self.hint(decision))
        }
        // Where there is no room for every label, enters and exits have theirs.
        var labels: [Double] = []
        for isEdge in [true, false] {
            for decision in shown where (decision.kind == .enter || decision.kind == .exit) == isEdge {
                let place = min(x(decision.time) + 3, Self.right - 40)
                guard labels.allSatisfy({ abs($0 - place) > 62 }) else { continue }
                labels.append(place)
                drawing.text(decision.kind.rawValue, place, 105, "", hint: Self.hint(decision))
            }
        }
    }

    private static func hint(_ decision: BeaconTimeline.Decision) -> String {
        "\(BeaconTimeline.clock(decision.time)) \(decision.kind.rawValue): \(decision.reason)"
    }

    private mutating func drawLegend() {
        var place = Self.left
        for (style, text) in [
            ("heard", "heard"), ("filtered", "filtered"), ("silence", "not heard for"), ("exit", "exit time"),
            ("enter", "enter"), ("left", "exit, forgotten"), ("other", "first heard, radio"),
        ] {
            drawing.line(place, 354, place + 22, 354, style)
            drawing.text(text, place + 28, 358, "")
            place += 46 + Double(text.count) * 6.6
        }
        for (style, text) in [("stay", "present"), ("blind", "no radio")] {
            drawing.rectangle(place...place + 18, 347...361, style)
            drawing.text(text, place + 24, 358, "")
            place += 46 + Double(text.count) * 6.6
        }
    }
}
