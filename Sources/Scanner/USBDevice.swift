// SPDX-License-Identifier: Apache-2.0

import CBluetooth
import Glibc
import LinuxIO

/// The USB device that an adapter is.
enum USBDevice {
    /// Its file, such as `/dev/bus/usb/001/004`; nil for an adapter on another bus.
    static func path(ofAdapter index: UInt16, systemFolder: String = "/sys") -> String? {
        // The adapter belongs to an interface, and that to the device.
        let device = "\(systemFolder)/class/bluetooth/hci\(index)/device/.."
        guard let bus = Folder.text(of: "\(device)/busnum").flatMap({ UInt16($0) }),
            let number = Folder.text(of: "\(device)/devnum").flatMap({ UInt16($0) })
        else { return nil }
        return "/dev/bus/usb/\(threeDigits(bus))/\(threeDigits(number))"
    }

    /// Has the kernel reset it; false when it is on another bus, or this process may not write to its file.
    static func reset(adapter index: UInt16) -> Bool {
        guard let path = path(ofAdapter: index), let file = try? FileDescriptor.open(path, O_WRONLY) else {
            return false
        }
        return cbluetooth_usb_reset(file.number) == 0
    }

    private static func threeDigits(_ number: UInt16) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 3 - digits.count)) + digits
    }
}
