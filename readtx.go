package perdure

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Querier reads rows with SQL: [Store.Reader], a [ReadTx] and a [WriteTx] do.
// [Store.WriteTx] says what the statements may be.
type Querier interface {
	// Query runs a statement that returns rows. In a transaction the rows must be
	// closed before its next statement.
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	// QueryRow runs a statement that returns one row.
	QueryRow(ctx context.Context, query string, args ...any) Row
}

// Row is the result of a query for one row.
type Row interface {
	// Scan copies the columns into dest. It returns sql.ErrNoRows when there is no
	// row.
	Scan(dest ...any) error
}

// rowFunc is a Row that calls the function.
type rowFunc func(dest ...any) error

func (f rowFunc) Scan(dest ...any) error { return f(dest...) }

// EachRow runs a statement and calls row for each row of the result, until row fails.
func EachRow(ctx context.Context, q Querier, row func(Row) error, query string, args ...any) error {
	return sqldb.Each(ctx, q.Query, func(scan sqldb.Scan) error { return row(rowFunc(scan)) }, query, args...)
}

// Reader reads committed state; two reads may see different states. Errors of the
// database are *Error values.
func (s *Store) Reader() Querier { return reader{s} }

type reader struct{ s *Store }

func (r reader) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := r.s.db.Query(ctx, query, args...)
	return rows, wrap("read store", err)
}

func (r reader) QueryRow(ctx context.Context, query string, args ...any) Row {
	return rowFunc(func(dest ...any) error {
		err := r.s.db.QueryRow(ctx, query, args, dest...)
		if errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return wrap("read store", err)
	})
}

// ReadTx reads the store on one snapshot of committed state, see [Store.ReadTx]. It
// is valid until the function that received it returns, and only in that function's
// goroutine.
type ReadTx struct {
	s   *Store
	tx  *sql.Tx
	now int64
}

// ReadTx runs read on one snapshot of committed state. It does not see changes committed
// meanwhile, and does not block them.
func (s *Store) ReadTx(ctx context.Context, read func(context.Context, *ReadTx) error) error {
	now, err := s.db.Now(ctx)
	if err != nil {
		return wrap("read store", err)
	}
	err = s.db.View(ctx, func(tx *sql.Tx) error { return read(ctx, &ReadTx{s: s, tx: tx, now: now}) })
	return wrap("read store", err)
}

// Query runs a statement that returns rows, see [Querier].
func (tx *ReadTx) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return tx.tx.QueryContext(ctx, tx.s.db.Text(query), args...)
}

// QueryRow runs a statement that returns one row, see [Querier].
func (tx *ReadTx) QueryRow(ctx context.Context, query string, args ...any) Row {
	return tx.tx.QueryRowContext(ctx, tx.s.db.Text(query), args...)
}

// Now returns the time of the transaction.
func (tx *ReadTx) Now() time.Time { return micros(tx.now) }

// TreeKey returns the number under which the rows of a tree are kept. It fails
// with CodeNotFound when the store has no such tree.
func (tx *ReadTx) TreeKey(ctx context.Context, id TreeID) (int64, error) {
	return treeKey(ctx, tx, id)
}

// Costs returns the usage of a tree by depth and model, see [Progress.Costs]. key is what
// TreeKey returns.
func (tx *ReadTx) Costs(ctx context.Context, key int64) ([]CostLine, error) {
	st, err := loadStat(ctx, func(ctx context.Context, q string, args []any, dest ...any) error {
		return tx.QueryRow(ctx, q, args...).Scan(dest...)
	}, key)
	if err != nil {
		return nil, wrap("read costs", err)
	}
	return st.costLines(), nil
}

// Text returns the text that a column of a tree's row holds or refers to.
func (tx *ReadTx) Text(ctx context.Context, tree int64, column string) (string, error) {
	return tx.s.load(ctx, tree, column)
}

// SessionAlive reports whether a session, by its number, is alive.
func (tx *ReadTx) SessionAlive(ctx context.Context, session int64) (bool, error) {
	return tx.s.alive(ctx, session)
}

func treeKey(ctx context.Context, q Querier, id TreeID) (key int64, err error) {
	err = q.QueryRow(ctx, sqlTreeNum, string(id)).Scan(&key)
	return key, orNotFound(err, noTree("read tree", id))
}
