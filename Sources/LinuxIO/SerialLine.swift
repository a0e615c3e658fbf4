// SPDX-License-Identifier: Apache-2.0

import CLinuxIO
import Glibc

extension FileDescriptor {
    /// Rates of a serial line, bits a second.
    public static let serialRates: [UInt32] = serialSpeeds.map(\.rate)

    private static let serialSpeeds: [(rate: UInt32, speed: speed_t)] = [
        (9600, speed_t(B9600)), (19_200, speed_t(B19200)), (38_400, speed_t(B38400)), (57_600, speed_t(B57600)),
        (115_200, speed_t(B115200)), (230_400, speed_t(B230400)), (460_800, speed_t(B460800)),
        (500_000, speed_t(B500000)), (921_600, speed_t(B921600)), (1_000_000, speed_t(B1000000)),
        (1_500_000, speed_t(B1500000)), (2_000_000, speed_t(B2000000)), (3_000_000, speed_t(B3000000)),
    ]

    /// Opens a serial line for octets as they are: 8 bits, no parity, one stop bit, nothing interpreted; nobody else may
    /// open it meanwhile.
    ///
    /// - Parameters:
    ///   - rate: one of ``serialRates``; another is the error EINVAL.
    ///   - hardwareFlowControl: whether RTS and CTS hold the other side back.
    public static func serialLine(
        _ path: String, rate: UInt32, hardwareFlowControl: Bool
    ) throws(SystemError) -> FileDescriptor {
        guard let speed = serialSpeeds.first(where: { $0.rate == rate })?.speed else {
            throw SystemError("cfsetspeed", "\(path) at \(rate) baud", code: EINVAL)
        }
        let line = try open(path, O_RDWR | O_NOCTTY | O_NONBLOCK)
        var settings = termios()
        guard unsafe tcgetattr(line.number, &settings) == 0 else { throw SystemError("tcgetattr", path) }
        unsafe cfmakeraw(&settings)
        settings.c_cflag |= tcflag_t(CLOCAL | CREAD)
        settings.c_cflag &= ~tcflag_t(CSTOPB)
        let flow = tcflag_t(bitPattern: clinuxio_hardware_flow_control)
        settings.c_cflag = hardwareFlowControl ? settings.c_cflag | flow : settings.c_cflag & ~flow
        guard unsafe cfsetspeed(&settings, speed) == 0, unsafe tcsetattr(line.number, TCSANOW, &settings) == 0 else {
            throw SystemError("tcsetattr", path)
        }
        guard clinuxio_claim_terminal(line.number) == 0 else { throw SystemError("ioctl", path) }
        // What came before anybody listened is no packet.
        _ = tcflush(line.number, TCIOFLUSH)
        return line
    }
}
