// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import LinuxIO
import Scanner
import Simulation

/// The sources of a configuration, opened.
struct OpenSources {
    private(set) var sources: [any PacketSource] = []
    /// The beginning of the capture that sets the clock; nil when the machine's clock does.
    private(set) var captureBeginning: MonotonicTime?

    init(_ configuration: AgentConfiguration, names: NameTable) throws(AgentError) {
        for text in configuration.sources {
            let specification: SourceSpecification
            do { specification = try SourceSpecification(text) } catch { throw .configuration(error.description) }
            switch specification {
            case .controller(let controller):
                do {
                    let scanner = try AdapterScanner(
                        SystemPort(controller), parameters: configuration.scan.monitoring.parameters)
                    sources.append(AdapterSource(scanner, adapter: names.intern(specification.adapterName)))
                } catch { throw .radio(error.description) }
            case .capture(let path):
                guard configuration.sources.count == 1 else {
                    throw .configuration("\(text): a capture has its own clock, so it cannot run beside another source")
                }
                do {
                    let source = try CaptureSource(path: path, adapter: names.intern(specification.adapterName))
                    captureBeginning = source.beginning
                    sources.append(source)
                } catch { throw .input(error.description) }
            case .simulation(let path):
                let scenario = try Self.scenario(path)
                sources.append(
                    SimulationSource(
                        scenario, adapters: scenario.radios.map { names.intern($0.name) },
                        parameters: configuration.scan.monitoring.parameters))
            }
        }
    }

    private static func scenario(_ path: String) throws(AgentError) -> Scenario {
        let text: [UInt8]
        do { text = try FileDescriptor.contents(of: path, limit: ConfigurationReader.maximumBytes) } catch {
            throw .input(error.description)
        }
        do { return Scenario(try ConfigurationReader.read(text, file: path, section: ScenarioFile.section)) } catch {
            throw .configuration(error.description)
        }
    }
}
