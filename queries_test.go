package perdure_test

import (
	"database/sql"
	"go/ast"
	"go/constant"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	_ "modernc.org/sqlite"             // driver "sqlite"

	"github.com/perdure/perdure/internal/storage/sqldb"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// queryExceptions are constants named like statements that do not stand alone.
var queryExceptions = map[string]string{}

// TestQueries prepares every SQL statement of the store, that is every
// constant named sql…, on both databases, so that a misspelt column or a word
// that one of them does not know is found without running the statement.
func TestQueries(t *testing.T) {
	t.Parallel()
	queries := queriesOf(t, ".", "internal/storage/dbblob", "internal/storage/invariant", "internal/view/outline", "internal/storage/gc", "loop/record", "handoff/ledger")
	if len(queries) < 10 {
		t.Fatalf("found %d statements; the search is broken", len(queries))
	}
	for name := range queryExceptions {
		if _, ok := queries[name]; !ok {
			t.Errorf("exception %q covers nothing any more: delete it", name)
		}
		delete(queries, name)
	}
	// SQLite looks at a parameter that is the whole limit while it prepares, and
	// prepares the statement anew whenever the parameter is bound.
	bare := regexp.MustCompile(`LIMIT \$[0-9]+(\)|$|\s*[^ +0-9])`)
	for name, q := range queries {
		if bare.MatchString(q) {
			t.Errorf("%s: write the limit as $n + 0\n%s", name, q)
		}
	}
	for _, database := range []struct {
		name string
		open func(t *testing.T) *sql.DB
	}{{"sqlite", migratedSQLite}, {"postgres", migratedPostgres}} {
		t.Run(database.name, func(t *testing.T) {
			t.Parallel()
			db := database.open(t)
			if prepare(t, db, "SELECT no_such_column FROM task") == nil {
				t.Fatal("an unknown column is not reported; the test proves nothing")
			}
			for _, name := range sortedNames(queries) {
				if err := prepare(t, db, queries[name]); err != nil {
					t.Errorf("%s: %v\n%s", name, err, queries[name])
				}
			}
		})
	}
}

// queriesOf collects the statements of packages. Two of one name would hide each
// other.
func queriesOf(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	queries := make(map[string]string)
	for _, dir := range dirs {
		var files []*sourceFile
		for _, f := range handWritten(t) {
			if f.dir() == dir && !f.test {
				files = append(files, f)
			}
		}
		if len(files) == 0 {
			t.Fatalf("there is no package %s", dir)
		}
		for name, q := range constantsNamed("sql", files) {
			if other, ok := queries[name]; ok && other != q {
				t.Errorf("%s: another package has a statement of the name %s", dir, name)
			}
			queries[name] = q
		}
	}
	return queries
}

// constantsNamed evaluates the package-level string constants whose names
// begin with prefix. Types of other packages are not needed for that.
func constantsNamed(prefix string, files []*sourceFile) map[string]string {
	var trees []*ast.File
	for _, f := range files {
		trees = append(trees, f.ast)
	}
	config := types.Config{
		IgnoreFuncBodies: true,
		Importer:         nothing{},
		Error:            func(error) {},
	}
	// The error says that imports are missing, which is meant.
	pkg, _ := config.Check(modulePath, files[0].fset, trees, nil)
	found := make(map[string]string)
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if ok && strings.HasPrefix(name, prefix) && c.Val().Kind() == constant.String {
			found[name] = constant.StringVal(c.Val())
		}
	}
	return found
}

// nothing is an importer that knows no package.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	return types.NewPackage(path, filepath.Base(path)), nil
}

func migratedSQLite(t *testing.T) *sql.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perdure.db")
	return migrated(t, sqldb.Config{Path: path}, "sqlite", path)
}

func migratedPostgres(t *testing.T) *sql.DB {
	t.Helper()
	dsn := testdb.Postgres(t)
	return migrated(t, sqldb.Config{DSN: dsn}, "pgx", dsn)
}

func migrated(t *testing.T, cfg sqldb.Config, driver, dsn string) *sql.DB {
	t.Helper()
	store, err := sqldb.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("migrate: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func prepare(t *testing.T, db *sql.DB, query string) error {
	t.Helper()
	st, err := db.PrepareContext(t.Context(), query)
	if err != nil {
		return err
	}
	defer st.Close()
	return nil
}
