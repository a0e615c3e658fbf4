// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration
import Testing

@testable import MQTTSink

@Suite struct TopicTests {
    private let driver = Driver(port: 1)

    @Test(arguments: [
        ("abc_XYZ-019", "abc_XYZ-019"), ("a b", "a%20b"), ("a/b", "a%2Fb"), ("+#$", "%2B%23%24"), ("1.5", "1%2E5"),
        ("Büro", "B%C3%BCro"), ("\u{1}%", "%01%25"), ("", ""),
    ])
    func `a level holds nothing that a broker could take for something else`(level: String, escaped: String) {
        #expect(MQTTTopics.escape(level) == escaped)
    }

    @Test func `beacons, regions and the gateway have their places`() {
        var topics = MQTTTopics(prefix: "site/one", gateway: "gw.1", vocabulary: driver.vocabulary)
        #expect(topics.status == "site/one/gw%2E1/status")

        func spell(_ event: Event, _ leaf: MQTTTopics.Leaf) -> String {
            topics.spell(event, leaf)
            return topics.text
        }
        #expect(
            spell(driver.event(.enter, minor: 40_000), .event)
                == "site/one/gw%2E1/ibeacon/fda50693-a4e2-4fb1-afcf-c6eb07647825/1/40000/event")
        let url = Array("https://a.b/c?".utf8)
        let identity = BeaconIdentity(format: FormatID(rawValue: 1), octets: url.span)
        #expect(
            spell(driver.event(.sighting, identity), .sighting)
                == "site/one/gw%2E1/eddystone-url/https%3A%2F%2Fa%2Eb%2Fc%3F/sighting")
        #expect(
            spell(driver.region(.regionEnter, "Büro 1"), .presence) == "site/one/gw%2E1/region/B%C3%BCro%201/presence")
        #expect(spell(driver.region(.adapter, "hci0"), .event) == "site/one/gw%2E1/event")
        #expect(spell(driver.region(.gap, ""), .event) == "site/one/gw%2E1/event")
    }

    @Test func `templates say where each topic is`() {
        let templates = MQTTConfiguration.Templates(
            Values(given: [
                "gateway_topic": .text("gateways/{gateway}"), "beacon_topic": .text("{alias}/at/{gateway}"),
                "region_topic": .text("v1.0/{region}/{gateway}"),
            ]))
        var topics = MQTTTopics(prefix: "site", gateway: "gw 1", vocabulary: driver.vocabulary, templates: templates)
        #expect(topics.status == "site/gateways/gw%201/status")
        #expect(topics.territories == ["site/gateways/gw%201/", "site/", "site/v1.0/"])

        func spell(_ event: Event, _ leaf: MQTTTopics.Leaf) -> String {
            topics.spell(event, leaf)
            return topics.text
        }
        var beacon = driver.event(.enter, minor: 7)
        beacon.name = driver.vocabulary.names.intern("front door/+")
        #expect(spell(beacon, .presence) == "site/front%20door%2F%2B/at/gw%201/presence")
        beacon.name = driver.vocabulary.names.intern("back")
        #expect(spell(beacon, .presence) == "site/back/at/gw%201/presence", "as a new configuration calls it")
        #expect(
            spell(driver.event(.enter, minor: 7), .event) == "site/gw%201/ibeacon/\(Driver.uuid)/1/7/event",
            "what has no alias is where it usually is")
        #expect(spell(driver.region(.regionEnter, "a b"), .ranging) == "site/v1.0/a%20b/gw%201/ranging")
        #expect(spell(driver.region(.adapter, "hci0"), .event) == "site/gateways/gw%201/event")
    }

    @Test func `fields of an identity may change their order`() {
        let templates = MQTTConfiguration.Templates(
            Values(given: ["beacon_topic": .text("{gateway}/{minor}/{major}/{uuid}")]))
        var topics = MQTTTopics(prefix: "b", gateway: "g", vocabulary: driver.vocabulary, templates: templates)
        topics.spell(driver.event(.enter, minor: 7), .event)
        #expect(topics.text == "b/g/7/1/\(Driver.uuid)/event")
        let identity = BeaconIdentity(format: FormatID(rawValue: 1), octets: Array("u".utf8).span)
        topics.spell(driver.event(.enter, identity), .event)
        #expect(topics.text == "b/g/eddystone-url/u/event")
    }

    @Test func `more beacons than are kept get their own topics all the same`() {
        var topics = MQTTTopics(prefix: "b", gateway: "g", vocabulary: driver.vocabulary)
        for minor in 0...(MQTTTopics.capacity + 10) {
            topics.spell(driver.event(.sighting, minor: UInt16(minor)), .sighting)
            #expect(topics.text == "b/g/ibeacon/\(Driver.uuid)/1/\(minor)/sighting")
        }
        topics.spell(driver.event(.sighting, minor: 0), .presence)
        #expect(topics.text == "b/g/ibeacon/\(Driver.uuid)/1/0/presence")
    }
}
