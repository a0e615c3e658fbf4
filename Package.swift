// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

// The modules are the road of docs/architecture.md, left to right. An arrow never points upward:
// a target may depend only on targets that stand above it in this file.

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

func library(_ name: String, _ dependencies: Target.Dependency...) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings)
}

func sink(_ name: String, _ dependencies: Target.Dependency...) -> Target {
    .target(
        name: name, dependencies: ["BeaconModel", "SinkKit", "Configuration"] + dependencies,
        path: "Sources/Sinks/\(name)",
        exclude: ["README.md"], swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: Target.Dependency...) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

let package = Package(
    name: "beacond",
    products: [
        .executable(name: "beacond", targets: ["beacond"]),
        .library(name: "SinkKit", targets: ["SinkKit", "BeaconModel", "Configuration"]),
        .library(name: "SinkTestKit", targets: ["SinkTestKit"]),
        .library(name: "BeacondAgent", targets: ["Agent", "BeaconFormats", "LinuxIO"]),
        .library(name: "StockSinks", targets: ["StdoutSink", "JSONSink", "NullSink", "MQTTSink"]),
    ],
    targets: [
        // C libraries, from Debian.
        .systemLibrary(name: "CBluetooth", providers: [.apt(["libbluetooth-dev"])]),
        .systemLibrary(name: "CMosquitto", providers: [.apt(["libmosquitto-dev"])]),
        .systemLibrary(name: "CJansson", providers: [.apt(["libjansson-dev"])]),
        .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CCrypto", providers: [.apt(["libssl-dev"])]),
        .target(name: "CLinuxIO"),

        // The functional core: no operating system.
        library("BeaconModel"),
        library("HCI", "BeaconModel"),
        library("BeaconFormats", "HCI", "BeaconModel"),
        library("Presence", "BeaconModel"),
        library("Simulation", "BeaconModel"),

        // What touches the world.
        library("Configuration", "BeaconModel", "CJansson"),
        library("Crypto", "CCrypto"),
        library("LinuxIO", "BeaconModel", "CLinuxIO"),
        library("Scanner", "HCI", "BeaconModel", "LinuxIO", "CBluetooth"),
        library("Store", "BeaconModel", "LinuxIO", "CSQLite"),

        // Sinks: the contract, what the host does around one, and the destinations.
        library("SinkKit", "BeaconModel", "Configuration"),
        library("SinkRuntime", "SinkKit", "BeaconModel", "Configuration", "Store", "LinuxIO"),
        library("SinkTestKit", "SinkKit", "BeaconModel", "Configuration"),
        sink("StdoutSink", "LinuxIO"),
        sink("JSONSink", "LinuxIO"),
        sink("NullSink"),
        sink("MQTTSink", "CMosquitto", "LinuxIO"),

        // The host.
        library(
            "Agent", "HCI", "BeaconModel", "BeaconFormats", "Presence", "Simulation", "Configuration", "Crypto",
            "LinuxIO",
            "Scanner", "Store", "SinkKit", "SinkRuntime"),
        .executableTarget(
            name: "beacond",
            dependencies: [
                "Agent", "BeaconModel", "BeaconFormats", "HCI", "Configuration", "LinuxIO", "Presence", "Scanner",
                "SinkKit", "StdoutSink", "JSONSink", "NullSink", "MQTTSink",
            ],
            swiftSettings: settings),

        // Tests: few targets, because each costs link time.
        .target(
            name: "TestSupport", dependencies: ["BeaconModel", "LinuxIO"], path: "Tests/TestSupport",
            swiftSettings: settings),
        tests("CoreTests", "BeaconModel", "HCI", "BeaconFormats", "Presence", "Simulation", "Crypto", "TestSupport"),
        tests(
            "ConfigurationTests", "Agent", "BeaconModel", "BeaconFormats", "Configuration", "Presence", "Simulation",
            "SinkKit", "TestSupport"),
        tests("StoreTests", "BeaconModel", "BeaconFormats", "LinuxIO", "Store", "TestSupport"),
        tests(
            "SinkTests", "BeaconModel", "BeaconFormats", "Configuration", "JSONSink", "LinuxIO", "NullSink", "SinkKit",
            "SinkRuntime", "SinkTestKit", "StdoutSink", "Store", "TestSupport"),
        tests(
            "MQTTSinkTests", "BeaconModel", "BeaconFormats", "Configuration", "LinuxIO", "MQTTSink", "SinkKit",
            "SinkTestKit", "TestSupport"),
        tests(
            "SystemTests", "Agent", "BeaconModel", "BeaconFormats", "HCI", "LinuxIO", "Presence", "Scanner", "SinkKit",
            "TestSupport",
            "beacond"),
    ]
)
