// SPDX-License-Identifier: Apache-2.0

public import BeaconModel
import CBluetooth
import Glibc
import LinuxIO

/// One Bluetooth adapter as the kernel tells of it, without opening it.
public struct AdapterDescription: Equatable, Sendable {
    /// How a radio switch stands (rfkill).
    public enum Switch: String, Sendable {
        /// The radio may be used.
        case open
        /// Blocked by software, for instance airplane mode.
        case soft
        /// Blocked by a switch or a key of the machine.
        case hard
    }

    public var index: UInt16
    /// nil when the kernel does not tell, as before the first time the adapter is up.
    public var address: DeviceAddress?
    /// nil when only /sys was asked.
    public var isUp: Bool?
    /// `usb`, `serial`, `virtual`…
    public var bus: String?
    /// nil when there is no switch for it.
    public var radioSwitch: Switch?
    /// Whether it speaks LE; nil when not known, as before the first time the adapter is up.
    public var hasLowEnergy: Bool?

    public var name: String { "hci\(index)" }

    public init(
        index: UInt16, address: DeviceAddress? = nil, isUp: Bool? = nil, bus: String? = nil,
        radioSwitch: Switch? = nil, hasLowEnergy: Bool? = nil
    ) {
        self.index = index
        self.address = address
        self.isUp = isUp
        self.bus = bus
        self.radioSwitch = radioSwitch
        self.hasLowEnergy = hasLowEnergy
    }
}

/// The adapters of this machine.
public struct AdapterList: Sendable {
    /// In the order of their indices.
    public private(set) var adapters: [AdapterDescription]
    /// Why the kernel could not be asked, with the cure; nil when it answered.
    public private(set) var failure: AdapterSocket.OpenError?

    /// Asks the kernel and looks into `/sys`.
    ///
    /// - Parameter systemFolder: where `class/bluetooth` and `class/rfkill` are.
    public init(systemFolder: String = "/sys") {
        let asked: [AdapterDescription]
        do {
            asked = try Self.askKernel()
            failure = nil
        } catch {
            asked = []
            failure = error
        }
        adapters = Self.complete(asked, systemFolder)
    }

    /// Adds what /sys knows: the bus, the switch, and adapters that the kernel did not name.
    static func complete(_ asked: [AdapterDescription], _ systemFolder: String) -> [AdapterDescription] {
        var found = asked
        let folder = "\(systemFolder)/class/bluetooth"
        // A connection is listed beside the adapters, as hci0:12.
        for name in Folder.names(in: folder) where name.hasPrefix("hci") {
            guard let index = UInt16(name.dropFirst(3)), !found.contains(where: { $0.index == index }) else { continue }
            found.append(AdapterDescription(index: index))
        }
        let switches = RadioSwitches(systemFolder: systemFolder)
        for place in found.indices {
            let name = found[place].name
            if let bus = Folder.linkTarget("\(folder)/\(name)/device/subsystem") { found[place].bus = bus }
            if found[place].address == nil, let text = Folder.text(of: "\(folder)/\(name)/address") {
                found[place].address = DeviceAddress(text: text, kind: .publicDevice).flatMap {
                    $0.value == 0 ? nil : $0
                }
            }
            found[place].radioSwitch = switches[name]
        }
        return found.sorted { $0.index < $1.index }
    }

    private static func askKernel() throws(AdapterSocket.OpenError) -> [AdapterDescription] {
        let type = Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let number = Glibc.socket(AF_BLUETOOTH, type, BTPROTO_HCI)
        guard number >= 0 else {
            let reason = SystemError.text(errno)
            throw errno == EAFNOSUPPORT
                ? AdapterSocket.OpenError(description: "this kernel has no Bluetooth (\(reason))", isMissing: true)
                : AdapterSocket.OpenError(description: "no HCI socket (\(reason))", isMissing: false)
        }
        let socket = FileDescriptor(owning: number)
        // struct hci_dev_list_req: a count, then an index and flags for each adapter.
        let capacity = Int(HCI_MAX_DEV)
        var list = [UInt8](repeating: 0, count: 4 + capacity * 8)
        list[0] = UInt8(capacity)
        do { try socket.control(cbluetooth_get_device_list, &list) } catch {
            throw AdapterSocket.OpenError(
                description: "the kernel does not list its adapters (\(error))", isMissing: false)
        }
        let count = min(Int(list[0]) | Int(list[1]) << 8, capacity)
        return (0..<count).map { place in
            let offset = 4 + place * 8
            return describe(UInt16(list[offset]) | UInt16(list[offset + 1]) << 8, socket)
        }
    }

    private static func describe(_ index: UInt16, _ socket: borrowing FileDescriptor) -> AdapterDescription {
        // struct hci_dev_info: index, name of 8, address of 6, flags of 4, bus and type, features of 8…
        var info = [UInt8](repeating: 0, count: MemoryLayout<hci_dev_info>.size)
        info[0] = UInt8(truncatingIfNeeded: index)
        info[1] = UInt8(index >> 8)
        guard (try? socket.control(cbluetooth_get_device_info, &info)) != nil else {
            return AdapterDescription(index: index)
        }
        var address: UInt64 = 0
        for place in (10..<16).reversed() { address = address << 8 | UInt64(info[place]) }
        let buses = ["virtual", "usb", "pccard", "serial", "rs232", "pci", "sdio", "spi", "i2c", "smd", "virtio"]
        let bus = Int(info[20] & 0x0F)
        // LMP features (Core 5.4, Vol 2, Part C, 3.3): octet 4, bit 6; all zero until the adapter was up.
        let features = info[21..<29]
        return AdapterDescription(
            index: index, address: address == 0 ? nil : DeviceAddress(value: address, kind: .publicDevice),
            isUp: info[16] & 1 != 0, bus: bus < buses.count ? buses[bus] : nil,
            hasLowEnergy: features.contains { $0 != 0 } ? info[25] & 0x40 != 0 : nil)
    }
}

/// The switches of the Bluetooth radios (rfkill), by the name of the adapter.
struct RadioSwitches: Sendable {
    private var states: [String: AdapterDescription.Switch] = [:]

    init(systemFolder: String) {
        let folder = "\(systemFolder)/class/rfkill"
        for entry in Folder.names(in: folder) {
            guard Folder.text(of: "\(folder)/\(entry)/type") == "bluetooth",
                let name = Folder.text(of: "\(folder)/\(entry)/name")
            else { continue }
            let isHard = Folder.text(of: "\(folder)/\(entry)/hard") == "1"
            let isSoft = Folder.text(of: "\(folder)/\(entry)/soft") == "1"
            states[name] = isHard ? .hard : isSoft ? .soft : .open
        }
    }

    /// nil when no switch has that name.
    subscript(name: String) -> AdapterDescription.Switch? { states[name] }

    /// A machine may have a switch for all of its Bluetooth, as laptops do, which names no adapter.
    var blocked: [(name: String, state: AdapterDescription.Switch)] {
        states.filter { $0.value != .open }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
