package sqldb

import (
	"context"
	"database/sql"
	"sync"
)

// stmtCache keeps the prepared statements of a pool. It stays small, because the
// statements are constants of the program, with few variants for optional filters.
type stmtCache struct{ stmts sync.Map } // string to *sql.Stmt

func (c *stmtCache) get(ctx context.Context, db *sql.DB, text func(string) string, q string) (*sql.Stmt, error) {
	if st, ok := c.stmts.Load(q); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := db.PrepareContext(ctx, text(q))
	if err != nil {
		return nil, err
	}
	if other, loaded := c.stmts.LoadOrStore(q, st); loaded {
		_ = st.Close() //nolint:sqlclosecheck // only this one: another goroutine was faster
		return other.(*sql.Stmt), nil
	}
	return st, nil
}

func (c *stmtCache) close() {
	c.stmts.Range(func(_, st any) bool {
		_ = st.(*sql.Stmt).Close() // a statement that reads, so nothing is lost
		return true
	})
	c.stmts.Clear()
}
