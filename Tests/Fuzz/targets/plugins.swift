// SPDX-License-Identifier: Apache-2.0

import Agent
import BeaconFormats
import BeaconModel
import Configuration

@testable import beacond

private let formats = FrameDecoder().catalog
private let section = AgentConfiguration.section(formats: formats, sinks: builtinSinks)

/// `plugins.json` with the formats and the sinks of the program.
///
/// The input is the text of the file.
func fuzz(_ input: Span<UInt8>) {
    let text = input.array
    guard (try? Document(text)) != nil else { return checkSyntax(text) }
    // Names live as long as their table, so each file has its own.
    let names = NameTable()
    do {
        let configuration = try AgentConfiguration.load(
            text, file: "plugins.json", formats: formats, sinks: builtinSinks, names: names)
        checkConfiguration(configuration, names)
    } catch {
        checkProblems(error.problems, text)
    }
}

/// Most inputs are no JSON. To say so the keys need not be declared anew, which takes most of the time.
private func checkSyntax(_ text: [UInt8]) {
    do {
        _ = try ConfigurationReader.read(text, file: "plugins.json", section: section)
        check(false, "accepted, although it is no JSON")
    } catch {
        check(error.problems.count == 1, "\(error.problems.count) mistakes of syntax")
        checkProblems(error.problems, text)
    }
}

private func checkConfiguration(_ configuration: AgentConfiguration, _ names: NameTable) {
    check((1...16).contains(configuration.sources.count), "\(configuration.sources.count) sources")
    check(Set(configuration.sources).count == configuration.sources.count, "a source twice")
    check(configuration.gatewayID?.isEmpty != true, "an empty gateway id")
    check(configuration.stateDirectory.map { $0.hasPrefix("/") } ?? true, "a relative state directory")
    let profiles = configuration.scan.profiles
    check(Set(profiles.map(\.name)).count == profiles.count, "a profile twice")
    check(profiles.contains(configuration.scan.monitoring), "a profile that is not there")
    check(profiles.allSatisfy { $0.pattern.window <= $0.pattern.interval }, "a window longer than its interval")
    check(configuration.presence.exitTime.map { $0 > .zero } ?? true, "an exit time of nothing")
    let known = configuration.decoder.catalog.formats.count
    check(known == formats.formats.count + configuration.formats.count, "\(known) formats")
    let beacons = configuration.beacons
    check(Set(beacons.map(\.identity)).count == beacons.count, "a beacon twice")
    let aliases = beacons.map { names[$0.alias] }.filter { !$0.isEmpty }
    check(Set(aliases).count == aliases.count, "an alias twice")
    let regions = configuration.regions
    check(Set(regions.map { names[$0.name] }).count == regions.count, "a region twice")
    check(regions.allSatisfy { !$0.patterns.isEmpty && $0.name != .none }, "a region of nothing")
    check(regions.allSatisfy { $0.patterns.allSatisfy { $0.prefix > 0 } }, "a region of everything")
    let sinks = configuration.sinks
    check(Set(sinks.map(\.name)).count == sinks.count, "a sink twice")
    check(sinks.allSatisfy { builtinSinks[$0.kind] != nil }, "a sink of no kind")
}

private func checkProblems(_ problems: [Problem], _ text: [UInt8]) {
    check(!problems.isEmpty, "refused for no reason")
    let lines = text.count { $0 == UInt8(ascii: "\n") } + 1
    var last = 0
    for problem in problems {
        check((1...lines).contains(problem.line), "line \(problem.line) of \(lines)")
        check(problem.line >= last, "not in file order")
        last = problem.line
        let isOneLine = problem.description.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
        check(isOneLine, "a message with control characters: \(problem)")
    }
}
