// SPDX-License-Identifier: Apache-2.0

import BeaconModel

/// A moment on the clock that runs only while somebody listens.
struct ListeningTime: Comparable, Sendable {
    var nanoseconds: Int64

    static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

    static func + (time: Self, interval: TimeInterval) -> Self {
        Self(nanoseconds: (MonotonicTime(nanoseconds: time.nanoseconds) + interval).nanoseconds)
    }
}

/// The monotonic clock without the times in which no radio listened, because silence in those says nothing.
struct ListeningClock: Sendable {
    private var radios: [(name: Name, isListening: Bool)] = []
    /// All pauses that are over.
    private var pauses = TimeInterval.zero
    private var pausedSince: MonotonicTime?
    private var changedAt = MonotonicTime(nanoseconds: .min)

    /// The reading at a moment of the monotonic clock.
    ///
    /// Before the last change between listening and not listening it gives the reading of that change: a packet that
    /// is delivered late across a change counts as heard at the change, which lets a beacon stay a moment longer.
    func reading(at time: MonotonicTime) -> ListeningTime {
        let moment = pausedSince ?? max(time, changedAt)
        return ListeningTime(nanoseconds: (moment + TimeInterval(nanoseconds: -pauses.nanoseconds)).nanoseconds)
    }

    /// When the clock reaches a reading, if the radios go on as they do now; nil while nobody listens.
    func time(of reading: ListeningTime) -> MonotonicTime? {
        pausedSince == nil ? MonotonicTime(nanoseconds: reading.nanoseconds) + pauses : nil
    }

    /// A radio that has not said what it does listens without pause.
    mutating func hear(_ radio: Name, at time: MonotonicTime) {
        if !radios.contains(where: { $0.name == radio }) { set(radio, isListening: true, at: time) }
    }

    mutating func set(_ radio: Name, _ activity: RadioActivity, at time: MonotonicTime) {
        if case .scanning(let window, _) = activity {
            set(radio, isListening: window > .zero, at: time)
        } else {
            set(radio, isListening: false, at: time)
        }
    }

    private mutating func set(_ radio: Name, isListening: Bool, at time: MonotonicTime) {
        if let index = radios.firstIndex(where: { $0.name == radio }) {
            radios[index].isListening = isListening
        } else {
            radios.append((radio, isListening))
        }
        let somebodyListens = radios.contains(where: \.isListening)
        if somebodyListens, let since = pausedSince {
            pauses = TimeInterval(
                nanoseconds: (MonotonicTime(nanoseconds: pauses.nanoseconds) + (time - since)).nanoseconds)
            pausedSince = nil
            changedAt = time
        } else if !somebodyListens, pausedSince == nil {
            pausedSince = time
        }
    }
}
