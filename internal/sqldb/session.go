package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// SessionLock is the server's sign that a process is connected: an advisory
// lock of a connection of its own, dropped when the connection ends.
type SessionLock struct{ conn *sql.Conn }

const (
	sqlLockSession = `SELECT pg_try_advisory_lock(hashtext('perdure-session ' || current_schema()), $1)`
	// A key of two integers shows in pg_locks as classid and objid, unsigned.
	sqlLockedSessions = `SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND classid = (hashtext('perdure-session ' || current_schema())::bigint & 4294967295)::oid`
)

// LockSession takes the lock of session id. PostgreSQL only.
func (db *DB) LockSession(ctx context.Context, id int64) (*SessionLock, error) {
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", db.classify(err))
	}
	var got bool
	if err := conn.QueryRowContext(ctx, sqlLockSession, int32(id)).Scan(&got); err != nil { //nolint:gosec // sessions are counted from 1
		return nil, errors.Join(db.classify(err), conn.Close())
	}
	if !got {
		return nil, errors.Join(fmt.Errorf("lock session %d: taken", id), conn.Close())
	}
	return &SessionLock{conn: conn}, nil
}

// Close gives the lock back by ending the connection.
func (l *SessionLock) Close() error {
	// This error tells database/sql to drop the connection instead of pooling it.
	err := l.conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, driver.ErrBadConn) {
		return nil
	}
	return err
}

// LockedSessions lists the sessions whose locks are held. PostgreSQL only.
func (db *DB) LockedSessions(ctx context.Context) (map[int64]bool, error) {
	rows, err := db.Query(ctx, sqlLockedSessions)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	held := make(map[int64]bool)
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, db.classify(err)
		}
		held[id] = true
	}
	return held, db.classify(rows.Err())
}
