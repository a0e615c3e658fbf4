// SPDX-License-Identifier: Apache-2.0

import CBluetooth
import Glibc
import LinuxIO

/// The machine's own adapters, as the kernel's ioctls show them.
enum LocalAdapter {
    /// What the kernel knows of an adapter.
    struct State {
        var address: UInt64
        var isUp: Bool
    }

    /// The index of the adapter that is named; nil when there is none.
    static func index(of adapter: ControllerSpecification.Adapter) throws(SystemError) -> UInt16? {
        switch adapter {
        case .index(let index): return index
        case .address(let address):
            let control = try controlSocket()
            var indices = [UInt16](repeating: 0, count: Int(HCI_MAX_DEV))
            let count = unsafe indices.withUnsafeMutableBufferPointer {
                unsafe cbluetooth_device_list(control.number, $0.baseAddress, Int32($0.count))
            }
            guard count >= 0 else { throw SystemError("ioctl", "HCIGETDEVLIST") }
            return indices.prefix(Int(count)).first { state(of: $0, control)?.address == address }
        }
    }

    /// nil when there is no such adapter, or it cannot be asked.
    static func state(of index: UInt16) -> State? {
        guard let control = try? controlSocket() else { return nil }
        return state(of: index, control)
    }

    /// Switches an adapter on or off. It may take seconds, and needs CAP_NET_ADMIN.
    static func setPower(_ isOn: Bool, of index: UInt16) throws(SystemError) {
        let control = try controlSocket()
        guard cbluetooth_device_power(control.number, index, isOn ? 1 : 0) == 0 else {
            // It is as it should be already.
            if errno == EALREADY { return }
            throw SystemError("ioctl", isOn ? "HCIDEVUP" : "HCIDEVDOWN")
        }
    }

    static func controlSocket() throws(SystemError) -> FileDescriptor {
        let type = Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let number = socket(AF_BLUETOOTH, type, BTPROTO_HCI)
        guard number >= 0 else { throw SystemError("socket", "") }
        return FileDescriptor(owning: number)
    }

    private static func state(of index: UInt16, _ control: borrowing FileDescriptor) -> State? {
        var info = hci_dev_info()
        guard unsafe cbluetooth_device_info(control.number, index, &info) == 0 else { return nil }
        let octets = info.bdaddr.b
        let address = [octets.5, octets.4, octets.3, octets.2, octets.1, octets.0].reduce(UInt64(0)) {
            $0 << 8 | UInt64($1)
        }
        return State(address: address, isUp: info.flags & 1 << UInt32(HCI_UP) != 0)
    }
}
