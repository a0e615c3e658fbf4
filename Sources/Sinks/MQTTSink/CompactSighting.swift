// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import SinkKit

/// A sighting without what its topic says, and without what follows from the rest.
///
/// The keys are those of the whole event and mean the same, so that a reader which takes what it needs reads both.
enum CompactSighting {
    static func write(_ event: borrowing Event, _ formats: FormatCatalog, into writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("time")
        writer.time(event.wallTime)
        if !event.isClockSynchronized {
            writer.key("clock_synchronized")
            writer.boolean(false)
        }
        writer.key("v")
        writer.integer(EventEncoder.version)
        writer.key("rssi")
        if let rssi = event.signal.last { writer.integer(rssi) } else { writer.null() }
        writer.key("rssi_filtered")
        if let filtered = event.signal.filtered { writer.decimal(Double(filtered), decimals: 1) } else { writer.null() }
        writer.key("count")
        writer.integer(event.signal.count)
        writer.key("accuracy")
        writer.decimal(Double(event.accuracy), decimals: 2)
        event.payload?.write(formats, into: &writer)
        writer.endObject()
    }
}
