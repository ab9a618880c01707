package sqldb

import (
	"context"
	"database/sql"
	"sync"
)

// stmtCache keeps the prepared statements of a pool. It stays small, because the
// statements are constants of the program, with few variants for optional filters.
type stmtCache struct {
	mu    sync.RWMutex // guards stmts
	stmts map[string]*sql.Stmt
}

func (c *stmtCache) get(ctx context.Context, db *sql.DB, text func(string) string, q string) (*sql.Stmt, error) {
	c.mu.RLock()
	st := c.stmts[q]
	c.mu.RUnlock()
	if st != nil {
		return st, nil
	}
	st, err := db.PrepareContext(ctx, text(q))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.stmts[q]; other != nil {
		_ = st.Close() //nolint:sqlclosecheck // only this one: another goroutine was faster
		return other, nil
	}
	if c.stmts == nil {
		c.stmts = make(map[string]*sql.Stmt)
	}
	c.stmts[q] = st
	return st, nil
}

func (c *stmtCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.stmts {
		_ = st.Close() // of a statement that reads, nothing can be lost
	}
	c.stmts = nil
}
