// SPDX-License-Identifier: Apache-2.0

import Glibc
import LinuxIO

extension ControllerPort {
    /// That the adapter is switched off, by what, and the cure.
    var switchedOff: String {
        switch radioSwitch {
        case .hard: "the radio is switched off by a switch or a key of the machine (rfkill, hard)"
        case .soft: "the radio is switched off by software, as in airplane mode; rfkill unblock bluetooth"
        case .open, nil: "the adapter is switched off; bluetoothctl power on"
        }
    }
}

extension SystemError {
    /// What may help when an adapter could not be switched on, as a clause; empty when nothing is known.
    var powerCure: String {
        switch code {
        case ERFKILL: "; rfkill unblock bluetooth"
        case EPERM, EACCES: "; bluetoothctl power on, or give the program CAP_NET_ADMIN"
        case ETIMEDOUT: "; the controller hangs, unplug it if this goes on"
        default: ""
        }
    }
}
