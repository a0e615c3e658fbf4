// SPDX-License-Identifier: Apache-2.0

#pragma once
#include <sqlite3.h>

// SQLITE_TRANSIENT (SQLite copies the value) is a cast that Swift does not import.

static inline int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int octets) {
    return sqlite3_bind_text(statement, index, text, octets, SQLITE_TRANSIENT);
}

static inline int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *start, int octets) {
    return sqlite3_bind_blob(statement, index, start, octets, SQLITE_TRANSIENT);
}
