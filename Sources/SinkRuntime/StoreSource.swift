// SPDX-License-Identifier: Apache-2.0

public import Store

/// The outbox that durable sinks read.
extension Store: TransitionSource {}
