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
            return try indices(control).first { state(of: $0, control)?.address == address }
        }
    }

    /// The indices of all adapters.
    static func indices(_ control: borrowing FileDescriptor) throws(SystemError) -> [UInt16] {
        var indices = [UInt16](repeating: 0, count: Int(HCI_MAX_DEV))
        let count = unsafe indices.withUnsafeMutableBufferPointer {
            unsafe cbluetooth_device_list(control.number, $0.baseAddress, Int32($0.count))
        }
        guard count >= 0 else { throw SystemError("ioctl", "HCIGETDEVLIST") }
        return Array(indices.prefix(Int(count)))
    }

    /// What the kernel knows of an adapter; nil when there is none, or it cannot be asked.
    static func info(of index: UInt16, _ control: borrowing FileDescriptor) -> hci_dev_info? {
        var info = hci_dev_info()
        return unsafe cbluetooth_device_info(control.number, index, &info) == 0 ? info : nil
    }

    static func address(_ info: hci_dev_info) -> UInt64 {
        let octets = info.bdaddr.b
        return [octets.5, octets.4, octets.3, octets.2, octets.1, octets.0].reduce(0) { $0 << 8 | UInt64($1) }
    }

    static func isUp(_ info: hci_dev_info) -> Bool { info.flags & 1 << UInt32(HCI_UP) != 0 }

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
        info(of: index, control).map { State(address: address($0), isUp: isUp($0)) }
    }
}
