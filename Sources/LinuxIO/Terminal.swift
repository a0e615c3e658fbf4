// SPDX-License-Identifier: Apache-2.0

import CLinuxIO
import Glibc

/// The terminal behind a descriptor.
public enum Terminal {
    /// Columns and rows; nil when there is no terminal or it does not tell.
    public static func size(of descriptor: Int32) -> (columns: Int, rows: Int)? {
        var columns: UInt16 = 0
        var rows: UInt16 = 0
        guard unsafe clinuxio_terminal_size(descriptor, &columns, &rows) == 0, columns > 0, rows > 0 else { return nil }
        return (Int(columns), Int(rows))
    }
}
