// SPDX-License-Identifier: Apache-2.0

import LinuxIO
import Synchronization

/// What is done about the power of an adapter.
public enum PowerChange: Equatable, Sendable {
    case up
    case downAndUp
    /// Has the USB bus reset the adapter, which may come back under another index. Where that is not permitted, or the
    /// adapter is on another bus, the same as ``downAndUp``.
    case busReset
}

/// Changes the power of an adapter on a thread of its own, because the kernel waits seconds for a hung controller.
final class PowerCycle: Sendable {
    private let outcome = Mutex<Result<Void, SystemError>?>(nil)

    init(_ change: PowerChange, of index: UInt16) throws(SystemError) {
        let thread = try Thread(name: "hci-power") { [self] in
            let result: Result<Void, SystemError>
            do throws(SystemError) {
                // The device is then set up anew, and opened when it is found.
                if change != .busReset || !USBDevice.reset(adapter: index) {
                    if change != .up { try LocalAdapter.setPower(false, of: index) }
                    try LocalAdapter.setPower(true, of: index)
                }
                result = .success(())
            } catch { result = .failure(error) }
            outcome.withLock { $0 = result }
        }
        // It ends by itself; nobody waits for it.
        _ = consume thread
    }

    /// nil while it goes on.
    var result: Result<Void, SystemError>? { outcome.withLock { $0 } }
}
