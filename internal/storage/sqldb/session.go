package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// SessionLock shows that a process is connected: it is an advisory lock of the server on
// a connection of its own, released when the connection ends. Its methods must not be
// called concurrently.
type SessionLock struct {
	db   *DB
	id   int64
	conn *sql.Conn
}

const (
	sqlLockSession = `SELECT pg_try_advisory_lock(hashtext('perdure-session ' || current_schema()), $1)`
	// A key of two integers shows in pg_locks as classid and objid, unsigned.
	sqlLockedSessions = `SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND classid = (hashtext('perdure-session ' || current_schema())::bigint & 4294967295)::oid`
)

// LockSession takes the lock of session id. PostgreSQL only.
func (db *DB) LockSession(ctx context.Context, id int64) (*SessionLock, error) {
	l := &SessionLock{db: db, id: id}
	return l, l.lock(ctx)
}

func (l *SessionLock) lock(ctx context.Context) error {
	conn, err := l.db.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", l.db.classify(err))
	}
	var got bool
	if err := conn.QueryRowContext(ctx, sqlLockSession, int32(l.id)).Scan(&got); err != nil { //nolint:gosec // sessions are counted from 1
		return errors.Join(l.db.classify(err), conn.Close())
	}
	if !got {
		return errors.Join(fmt.Errorf("lock session %d: taken", l.id), conn.Close())
	}
	l.conn = conn
	return nil
}

// Renew takes the lock again if its connection was lost: until then other processes
// consider the session dead.
func (l *SessionLock) Renew(ctx context.Context) error {
	if l.conn != nil && l.conn.PingContext(ctx) == nil {
		return nil
	}
	if err := l.Close(); err != nil {
		return err
	}
	return l.lock(ctx)
}

// Close releases the lock by closing the connection.
func (l *SessionLock) Close() error {
	if l.conn == nil {
		return nil
	}
	conn := l.conn
	l.conn = nil
	// This error tells database/sql to drop the connection instead of pooling it.
	err := conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// LockedSessions lists the sessions whose locks are held. PostgreSQL only.
func (db *DB) LockedSessions(ctx context.Context) (map[int64]bool, error) {
	held := make(map[int64]bool)
	err := Each(ctx, db.Query, func(scan Scan) error {
		id, err := Column[int64](scan)
		held[id] = true
		return err
	}, sqlLockedSessions)
	return held, db.classify(err)
}
