// SPDX-License-Identifier: Apache-2.0

import JSONSink
import MQTTSink
import NullSink
import SinkKit
import StdoutSink

/// The sinks of this program: one line each.
let builtinSinks = SinkRegistry([
    SinkRegistration(StdoutSink.self),
    SinkRegistration(JSONSink.self),
    SinkRegistration(MQTTSink.self),
    SinkRegistration(NullSink.self),
])
