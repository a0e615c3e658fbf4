// SPDX-License-Identifier: Apache-2.0

import LinuxIO
import Synchronization

/// Switches an adapter off and on again on a thread of its own, because the kernel waits seconds for a hung controller.
final class PowerCycle: Sendable {
    enum Change { case down, up, downAndUp }

    private let outcome = Mutex<Result<Void, SystemError>?>(nil)

    init(_ change: Change, of index: UInt16) throws(SystemError) {
        let thread = try Thread(name: "hci-power") { [self] in
            let result: Result<Void, SystemError>
            do throws(SystemError) {
                if change != .up { try LocalAdapter.setPower(false, of: index) }
                if change != .down { try LocalAdapter.setPower(true, of: index) }
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
