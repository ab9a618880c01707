package sqldb

import (
	"context"
	"database/sql"
	"sync"
)

// stmtCache keeps the prepared statements of a pool. The texts are constants of
// the program (plus the few forms of optional filters), so it stays small.
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
		_ = st.Close() //nolint:sqlclosecheck // only this one: somebody was faster, and theirs is as good
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
		_ = st.Close() // reading statements hold nothing that could be lost
	}
	c.stmts = nil
}
