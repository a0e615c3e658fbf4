// SPDX-License-Identifier: Apache-2.0

/// What became of the PDUs that were sent while a radio existed.
public struct ReceptionTally: Equatable, Sendable {
    /// Reported.
    public internal(set) var heard = 0
    /// The radio did not listen to that channel for the whole PDU.
    public internal(set) var missed = 0
    /// Below the sensitivity.
    public internal(set) var faint = 0
    /// Overlapped by another PDU on its channel that was not weaker by the capture margin.
    public internal(set) var collided = 0
    /// Lost by the beacon's share of unexplained loss.
    public internal(set) var lost = 0
}
