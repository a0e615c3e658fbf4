// SPDX-License-Identifier: Apache-2.0

import BeaconModel
import CMosquitto
import Glibc

/// One connection to a broker, from CONNECT to its end: a libmosquitto handle that is never used for a second one.
///
/// libmosquitto is only the wire here. Nothing is queued in it while there is no connection (it would accept without
/// bound, and say that it did not), and its own thread, reconnecting and blocking connect are never used.
@safe final class MQTTConnection {
    struct Parameters {
        var host: String
        var port: Int32
        var clientID: String
        /// Seconds.
        var keepalive: Int32
        /// With a NUL behind it, as the password.
        var username: [CChar]?
        var password: [CChar]?
        var tls: MQTTConfiguration.TLS?
        var version: MQTTVersion
        var willTopic: String
        var will: [UInt8]
        /// Seconds, MQTT 5 only.
        var willDelay: UInt32
        var sendBuffer: Int32
        /// Milliseconds.
        var userTimeout: Int32
    }

    /// At least once, as the number in the packet.
    enum Quality: Int32 {
        case atMostOnce = 0
        case atLeastOnce = 1
    }

    let version: MQTTVersion
    let reports = MQTTReports()

    private let handle: OpaquePointer
    private let isEncrypted: Bool
    /// The kernel holds what does not fill a segment.
    private var isGathering = false
    /// Topics of subscriptions by the number of their packet.
    private var subscribed: [Int32: String] = [:]
    private var polled = [pollfd(), pollfd(), pollfd()]
    /// TCP has connected.
    private var isReached = false

    /// Begins to connect; ``service(for:wake:)`` goes on with it, and ``isAccepted`` says when it is done.
    init(_ parameters: Parameters) throws(MQTTFailure) {
        try Self.prepareLibrary()
        version = parameters.version
        isEncrypted = parameters.tls != nil
        // With MQTT 5 the session outlives the connection, so that a will that waits for its delay is dropped when the
        // gateway returns: a clean start would end the session, and with it the wait.
        guard
            let handle = unsafe mosquitto_new(
                parameters.clientID, version == .v311, Unmanaged.passUnretained(reports).toOpaque())
        else { throw .lost("libmosquitto cannot make a client: \(errorText(errno))") }
        unsafe self.handle = unsafe handle
        unsafe reports.register(with: handle)
        try configure(parameters)
        try check(unsafe mosquitto_connect_async(handle, parameters.host, parameters.port, parameters.keepalive))
        setSocketOptions(parameters)
    }

    deinit {
        unsafe mosquitto_destroy(handle)
    }

    // MARK: State

    /// The broker has accepted the connection.
    var isAccepted: Bool { reports.connectCode == 0 }

    /// There is a socket.
    var isOpen: Bool { unsafe mosquitto_socket(handle) >= 0 }

    /// Something that was published does not fit into the socket yet.
    var hasUnsentBytes: Bool { unsafe mosquitto_want_write(handle) }

    // MARK: Driving

    /// Lets the kernel put messages together into full segments until ``release()`` or the next wait: sent one by one,
    /// each would wake the broker.
    func gather() {
        guard !isGathering else { return }
        isGathering = true
        setOption(IPPROTO_TCP, TCP_CORK, 1)
    }

    /// Sends at once what was gathered.
    func release() {
        guard isGathering else { return }
        isGathering = false
        setOption(IPPROTO_TCP, TCP_CORK, 0)
    }

    /// Waits for the socket and moves bytes both ways once.
    ///
    /// - Parameters:
    ///   - time: the longest wait.
    ///   - wake: a descriptor that ends the wait when it becomes readable; −1 for none.
    ///   - other: another one.
    /// - Returns: whether `wake` is readable.
    @discardableResult
    func service(
        for time: TimeInterval, wake: Int32 = -1, alsoFor other: Int32 = -1
    ) throws(MQTTFailure) -> Bool {
        release()
        // mosquitto lets its second small packet wait until the first one is acknowledged by this machine, which would
        // take its time over it, up to 40 ms. The kernel forgets the wish, so it is said before each wait.
        setOption(IPPROTO_TCP, TCP_QUICKACK, 1)
        let socket = unsafe mosquitto_socket(handle)
        guard socket >= 0 else { throw endFailure(MOSQ_ERR_NO_CONN, systemCode: 0) }
        // The library waits for the broker's first word of TLS even when TCP was not there yet to send its own.
        let wantsWrite = hasUnsentBytes || isEncrypted && !isReached
        polled[0] = pollfd(fd: socket, events: Int16(POLLIN) | (wantsWrite ? Int16(POLLOUT) : 0), revents: 0)
        polled[1] = pollfd(fd: wake, events: Int16(POLLIN), revents: 0)
        polled[2] = pollfd(fd: other, events: Int16(POLLIN), revents: 0)
        let wait = Int32(clamping: (max(time, .zero).nanoseconds + 999_999) / 1_000_000)
        let count = unsafe polled.withUnsafeMutableBufferPointer { unsafe poll($0.baseAddress, nfds_t($0.count), wait) }
        let ready = count > 0 ? Int32(polled[0].revents) : 0

        if ready != 0, !isReached { try finishReaching(socket) }
        // Read first: answers that came before the end of the connection count.
        // The handshake of TLS goes on in the read call, whichever way its bytes go.
        let movesHandshake = isEncrypted && !isAccepted && ready & POLLOUT != 0
        if ready & (POLLIN | POLLHUP | POLLERR) != 0 || movesHandshake {
            try check(unsafe mosquitto_loop_read(handle, 1))
        }
        // The library takes an end amid the handshake for a pause, and would be called again and again.
        if isEncrypted, !isAccepted, ready & (POLLHUP | POLLERR) != 0 {
            let reason = "the connection was refused or closed before TLS was agreed on"
            throw reports.tlsTrouble == nil ? .lost(reason) : endFailure(MOSQ_ERR_TLS, systemCode: 0)
        }
        if ready & POLLOUT != 0 { try check(unsafe mosquitto_loop_write(handle, 1)) }
        try check(unsafe mosquitto_loop_misc(handle))
        return count > 0 && polled[1].revents != 0
    }

    /// Takes the acknowledgements that came since the last call.
    func takeAcknowledgements(_ body: (MQTTReports.Acknowledgement) -> Void) {
        reports.acknowledgements.forEach(body)
        reports.acknowledgements.removeAll(keepingCapacity: true)
    }

    // MARK: Packets

    /// Hands a message to the library, which writes it at once as far as the socket takes it.
    ///
    /// - Parameter topic: with a NUL behind it.
    /// - Returns: the identifier under which it will be acknowledged.
    func publish(
        _ topic: [CChar], _ payload: [UInt8], _ quality: Quality, retain: Bool, _ properties: MQTTProperties? = nil
    ) throws(MQTTFailure) -> Int32 {
        var message: Int32 = 0
        // The library of 3.1.1 refuses what has properties.
        let list = version == .v5 ? unsafe properties?.list : nil
        let code = unsafe payload.withUnsafeBytes { payload in
            unsafe mosquitto_publish_v5(
                handle, &message, topic, Int32(clamping: payload.count), payload.baseAddress, quality.rawValue, retain,
                list)
        }
        let systemCode = errno
        switch mosq_err_t(code) {
        case MOSQ_ERR_SUCCESS: return message
        case MOSQ_ERR_INVAL, MOSQ_ERR_MALFORMED_UTF8, MOSQ_ERR_PAYLOAD_SIZE, MOSQ_ERR_OVERSIZE_PACKET,
            MOSQ_ERR_QOS_NOT_SUPPORTED, MOSQ_ERR_RETAIN_NOT_SUPPORTED:
            throw .unsendable(MQTTFailure.libraryText(mosq_err_t(code)))
        default: throw endFailure(mosq_err_t(code), systemCode: systemCode)
        }
    }

    /// Subscribes at QoS 0. ``takeRefusedSubscriptions()`` tells a refusal.
    func subscribe(_ topic: String) throws(MQTTFailure) {
        var message: Int32 = 0
        try check(unsafe mosquitto_subscribe(handle, &message, topic, 0))
        subscribed[message] = topic
    }

    func unsubscribe(_ topic: String) throws(MQTTFailure) {
        try check(unsafe mosquitto_unsubscribe(handle, nil, topic))
    }

    /// The topics that the broker does not let this client read, each once, with the code of the refusal.
    func takeRefusedSubscriptions() -> [(topic: String, code: Int32)] {
        defer { reports.refusedSubscriptions.removeAll() }
        return reports.refusedSubscriptions.map { (subscribed[$0.message] ?? "a topic", $0.code) }
    }

    /// Writes DISCONNECT; the library closes the socket when it is out.
    ///
    /// - Parameter leavesWill: the broker shall publish the will after its delay, MQTT 5 only.
    func disconnect(leavesWill: Bool) throws(MQTTFailure) {
        let reason = leavesWill ? Int32(MQTT_RC_DISCONNECT_WITH_WILL_MSG.rawValue) : 0
        let code = mosq_err_t(unsafe mosquitto_disconnect_v5(handle, reason, nil))
        guard code == MOSQ_ERR_SUCCESS else { throw .lost(MQTTFailure.libraryText(code)) }
    }

    // MARK: Parts

    private static let libraryCode: Int32 = {
        // A peer that is gone is an error of write(2), for every library in the process.
        signal(SIGPIPE, SIG_IGN)
        return mosquitto_lib_init()
    }()

    private static func prepareLibrary() throws(MQTTFailure) {
        guard libraryCode == MOSQ_ERR_SUCCESS.rawValue else { throw .lost("libmosquitto cannot be initialised") }
    }

    private func configure(_ parameters: Parameters) throws(MQTTFailure) {
        try check(unsafe mosquitto_int_option(handle, MOSQ_OPT_PROTOCOL_VERSION, version.rawValue))
        if let username = parameters.username {
            if let password = parameters.password {
                try check(unsafe mosquitto_username_pw_set(handle, username, password))
            } else {
                try check(unsafe mosquitto_username_pw_set(handle, username, nil))
            }
        }
        if let tls = parameters.tls { try setTLS(tls) }
        try setWill(parameters)
        if version == .v5 { try setSessionExpiry(parameters.willDelay) }
    }

    private func setTLS(_ tls: MQTTConfiguration.TLS) throws(MQTTFailure) {
        for file in [tls.caFile, tls.certificate?.file, tls.certificate?.key].compactMap(\.self) {
            guard unsafe access(file, R_OK) == 0 else { throw .lost("cannot read \(file): \(errorText(errno))") }
        }
        // A key that is encrypted would make OpenSSL ask for its passphrase on the terminal.
        try check(
            unsafe mosquitto_tls_set(
                handle, tls.caFile, nil, tls.certificate?.file, tls.certificate?.key, { _, _, _, _ in 0 }))
        // Verify the broker's certificate; this version or a newer one.
        try check(unsafe mosquitto_tls_opts_set(handle, 1, "tlsv1.2", nil))
        if let alpn = tls.alpn { try check(unsafe mosquitto_string_option(handle, MOSQ_OPT_TLS_ALPN, alpn)) }
    }

    private func setWill(_ parameters: Parameters) throws(MQTTFailure) {
        var properties: OpaquePointer?
        if version == .v5 {
            try check(
                unsafe mosquitto_property_add_int32(
                    &properties, Int32(MQTT_PROP_WILL_DELAY_INTERVAL.rawValue), parameters.willDelay))
        }
        let code = unsafe parameters.will.withUnsafeBytes { will in
            unsafe mosquitto_will_set_v5(
                handle, parameters.willTopic, Int32(clamping: will.count), will.baseAddress,
                Quality.atLeastOnce.rawValue, true, properties)
        }
        // The library owns the properties only when it took them.
        if code != MOSQ_ERR_SUCCESS.rawValue { unsafe mosquitto_property_free_all(&properties) }
        try check(code)
    }

    /// The library takes properties for CONNECT only through its blocking connect. That one stores them before it looks
    /// at the host: called without a host it stores, refuses, and touches no network; the asynchronous connect sends
    /// what is stored (2.0.11, measured, and held by a test).
    private func setSessionExpiry(_ willDelay: UInt32) throws(MQTTFailure) {
        var properties: OpaquePointer?
        defer { unsafe mosquitto_property_free_all(&properties) }
        // A will is published at the end of the session when that comes before the end of its delay.
        let expiry = willDelay.multipliedReportingOverflow(by: 2).partialValue
        try check(
            unsafe mosquitto_property_add_int32(
                &properties, Int32(MQTT_PROP_SESSION_EXPIRY_INTERVAL.rawValue), expiry))
        let code = unsafe mosquitto_connect_bind_v5(handle, nil, 0, 0, nil, properties)
        if code != MOSQ_ERR_INVAL.rawValue { try check(code) }
    }

    private func setSocketOptions(_ parameters: Parameters) {
        setOption(IPPROTO_TCP, TCP_NODELAY, 1)
        setOption(IPPROTO_TCP, TCP_USER_TIMEOUT, parameters.userTimeout)
        setOption(Int(SOL_SOCKET), SO_SNDBUF, parameters.sendBuffer)
    }

    /// An option that this kind of socket does not know is no reason not to connect.
    private func setOption(_ level: Int, _ option: Int32, _ value: Int32) {
        var value = value
        let size = socklen_t(MemoryLayout<Int32>.size)
        _ = unsafe setsockopt(mosquitto_socket(handle), Int32(level), option, &value, size)
    }

    /// Asks whether connect(2) succeeded, because the library does not and would lose the reason.
    private func finishReaching(_ socket: Int32) throws(MQTTFailure) {
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size) == 0, code == 0 else {
            throw .lost(errorText(code))
        }
        isReached = true
    }

    private func check(_ code: Int32) throws(MQTTFailure) {
        let systemCode = errno
        if code != MOSQ_ERR_SUCCESS.rawValue || reports.endCode != nil {
            throw endFailure(mosq_err_t(code), systemCode: systemCode)
        }
    }

    private func endFailure(_ code: mosq_err_t, systemCode: Int32) -> MQTTFailure {
        if let trouble = reports.tlsTrouble {
            return reports.isUntrusted ? .untrusted("TLS: \(trouble)") : .lost("TLS: \(trouble)")
        }
        if let refusal = reports.connectCode, refusal != 0 { return .refused(code: refusal) }
        if let reason = reports.endCode, reason >= 128 { return .ended(code: reason) }
        // What OpenSSL had to say is lost when the broker's end of the connection overtakes it.
        if isEncrypted, reports.connectCode == nil, code == MOSQ_ERR_ERRNO, systemCode == EPROTO {
            return .lost("the broker closed TLS without a word: does it ask for a certificate (`certificate_file`)?")
        }
        if isReached, reports.connectCode == nil, !isOpen, code != MOSQ_ERR_KEEPALIVE { return .hungUp }
        return .lost(code == MOSQ_ERR_SUCCESS ? MOSQ_ERR_CONN_LOST : code, systemCode: systemCode)
    }
}
