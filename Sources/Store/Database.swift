// SPDX-License-Identifier: Apache-2.0

import CSQLite
import Glibc

/// A connection to an SQLite database, for one thread at a time.
@safe final class Database {
    private let handle: OpaquePointer

    /// - Parameter path: nil makes a database in memory.
    init(path: String?) throws(StoreError) {
        var handle: OpaquePointer?
        let code = unsafe sqlite3_open_v2(
            path ?? ":memory:", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nil)
        guard let opened = unsafe handle else { throw StoreError(.failed, "cannot open the outbox: out of memory") }
        unsafe self.handle = unsafe opened
        guard code == SQLITE_OK else { throw error(code, "open") }
        unsafe sqlite3_extended_result_codes(opened, 1)
    }

    deinit {
        // The connection ends with the last statement, which may outlive this.
        unsafe sqlite3_close_v2(handle)
    }

    var isReadOnly: Bool { unsafe sqlite3_db_readonly(handle, "main") == 1 }

    /// Runs one statement that gives no rows, or whose rows do not matter.
    func execute(_ sql: StaticString) throws(StoreError) {
        let statement = try Statement(self, sql)
        while try statement.step() {}
    }

    /// The first column of the first row.
    func text(_ sql: StaticString) throws(StoreError) -> String? {
        let statement = try Statement(self, sql)
        return try statement.step() ? statement.text(0) : nil
    }

    /// Runs `body` in a transaction; what it did is undone when it or the commit throws.
    func transaction(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try execute("BEGIN IMMEDIATE")
        do throws(StoreError) {
            try body()
            try execute("COMMIT")
        } catch {
            // SQLite may have rolled back by itself.
            if unsafe sqlite3_get_autocommit(handle) == 0 { try? execute("ROLLBACK") }
            throw error
        }
    }

    fileprivate func prepare(_ sql: StaticString) throws(StoreError) -> OpaquePointer {
        var statement: OpaquePointer?
        let code = sql.withUTF8Buffer { sql in
            unsafe sql.withMemoryRebound(to: CChar.self) { sql in
                unsafe sqlite3_prepare_v3(
                    handle, sql.baseAddress, Int32(sql.count), UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
            }
        }
        guard code == SQLITE_OK, let prepared = unsafe statement else { throw error(code, "prepare") }
        return unsafe prepared
    }

    fileprivate func error(_ code: Int32, _ operation: String) -> StoreError {
        let system = unsafe sqlite3_system_errno(handle)
        let cause: StoreError.Cause =
            switch code & 0xFF {
            // Our statements are correct: one that does not fit has met tables that are not ours.
            case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR: .damaged
            case SQLITE_FULL: .full
            case SQLITE_BUSY: .busy
            case SQLITE_IOERR, SQLITE_CANTOPEN: system == ENOSPC || system == EDQUOT ? .full : .failed
            default: .failed
            }
        let reason = unsafe String(cString: sqlite3_errmsg(handle))
        return StoreError(cause, "\(operation): \(reason) (SQLite \(code)\(system == 0 ? "" : ", errno \(system)"))")
    }
}

/// A prepared statement, used again and again. Its text is part of the program, never made from data.
@safe final class Statement {
    private let database: Database
    private let handle: OpaquePointer

    init(_ database: Database, _ sql: StaticString) throws(StoreError) {
        self.database = database
        unsafe handle = try database.prepare(sql)
    }

    deinit {
        unsafe sqlite3_finalize(handle)
    }

    // MARK: Parameters, from 1

    func bind(_ index: Int32, _ value: Int64) {
        unsafe sqlite3_bind_int64(handle, index, value)
    }

    func bind(_ index: Int32, _ text: String) {
        var text = text
        text.withUTF8 { text in
            unsafe text.withMemoryRebound(to: CChar.self) { text in
                _ = unsafe csqlite_bind_text(handle, index, text.baseAddress, Int32(clamping: text.count))
            }
        }
    }

    func bind(_ index: Int32, _ octets: [UInt8]) {
        unsafe octets.withUnsafeBytes { octets in
            _ = unsafe csqlite_bind_blob(handle, index, octets.baseAddress, Int32(clamping: octets.count))
        }
    }

    // MARK: Rows

    /// Goes to the next row; false behind the last one, where the statement is ready to start again.
    func step() throws(StoreError) -> Bool {
        let code = unsafe sqlite3_step(handle)
        if code == SQLITE_ROW { return true }
        guard code == SQLITE_DONE else {
            let error = database.error(code, "step")
            reset()
            throw error
        }
        reset()
        return false
    }

    /// Runs a statement that gives no rows.
    func run() throws(StoreError) {
        while try step() {}
    }

    /// Lets go of the rows that were not taken.
    func reset() {
        unsafe sqlite3_reset(handle)
    }

    func integer(_ column: Int32) -> Int64 {
        unsafe sqlite3_column_int64(handle, column)
    }

    func text(_ column: Int32) -> String {
        guard let start = unsafe sqlite3_column_text(handle, column) else { return "" }
        return unsafe String(cString: start)
    }

    func octets(_ column: Int32) -> [UInt8] {
        guard let start = unsafe sqlite3_column_blob(handle, column) else { return [] }
        let count = unsafe Int(sqlite3_column_bytes(handle, column))
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}
