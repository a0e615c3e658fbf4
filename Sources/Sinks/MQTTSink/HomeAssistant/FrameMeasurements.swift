// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import Configuration

/// What a frame measures.
enum FrameMeasurements {
    /// Keys of ``MeasuredQuantity``. Read from what is published of the frame, so that both always agree.
    static func keys(in payload: FramePayload, _ formats: FormatCatalog) -> Set<String> {
        var writer = JSONWriter()
        writer.beginObject()
        payload.write(formats, into: &writer)
        writer.endObject()
        guard let document = try? Document(writer.bytes), case .object(let members) = document.root.content else {
            return []
        }
        var keys: Set<String> = []
        for member in members {
            switch (member.key, member.value.content) {
            case (_, .null): break
            case ("values", .object(let values)):
                keys.formUnion(values.compactMap { MeasuredQuantity.key(values: $0.key) })
            case ("binary", .object(let flags)):
                keys.formUnion(flags.compactMap { MeasuredQuantity.key(binary: $0.key) })
            default: keys.formUnion(MeasuredQuantity.keys(top: member.key))
            }
        }
        return keys
    }
}
