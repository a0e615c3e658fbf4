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

    /// By what the sources that mean it may name it.
    public var identities: [String] { [name] + (address.map { [addressText($0.value)] } ?? []) }

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
    public private(set) var failure: PortError?

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

    private static func askKernel() throws(PortError) -> [AdapterDescription] {
        do throws(SystemError) {
            let control = try LocalAdapter.controlSocket()
            return try LocalAdapter.indices(control).map { describe($0, control) }
        } catch {
            throw error.code == EAFNOSUPPORT
                ? PortError(.noBluetooth, "this kernel has no Bluetooth (\(SystemError.text(error.code)))")
                : PortError(.unusable, "the kernel does not list its adapters (\(error))")
        }
    }

    private static func describe(_ index: UInt16, _ control: borrowing FileDescriptor) -> AdapterDescription {
        guard let info = LocalAdapter.info(of: index, control) else { return AdapterDescription(index: index) }
        let address = LocalAdapter.address(info)
        let buses = ["virtual", "usb", "pccard", "serial", "rs232", "pci", "sdio", "spi", "i2c", "smd", "virtio"]
        let bus = Int(info.type & 0x0F)
        // LMP features (Core 5.4, Vol 2, Part C, 3.3): octet 4, bit 6; all zero until the adapter was up.
        let features = info.features
        let words = [
            features.0, features.1, features.2, features.3, features.4, features.5, features.6, features.7,
        ]
        return AdapterDescription(
            index: index, address: address == 0 ? nil : DeviceAddress(value: address, kind: .publicDevice),
            isUp: LocalAdapter.isUp(info), bus: bus < buses.count ? buses[bus] : nil,
            hasLowEnergy: words.contains { $0 != 0 } ? features.4 & 0x40 != 0 : nil)
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
