package perdure_test

import (
	"database/sql"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
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
	queries := queriesOf(t, ".", "internal/storage/dbblob", "internal/storage/invariant", "internal/view/outline",
		"internal/storage/gc", "loop/record", "handoff/ledger")
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

// TestNamedNumbers wants statements to name states, scopes and flags, see the
// constants of internal/storage/sqldb.
func TestNamedNumbers(t *testing.T) {
	t.Parallel()
	report(t, checkNamedNumbers(handWritten(t)), nil)
	bad := sources(t, map[string]string{"a.go": "package a\n" +
		"const sqlA = `UPDATE task_hot SET state = 1 WHERE h.state IN (2, 3)`\n" +
		"const sqlB = `SELECT id FROM state WHERE scope = 3 AND flags & 4 <> 0`\n" +
		"const sqlC = `SELECT id FROM task_hot WHERE state = ` + dbQueued + ` AND state = $1`\n"})
	if got := keys(checkNamedNumbers(bad)); len(got) != 2 {
		t.Errorf("found %q, want one finding in each of two statements", got)
	}
}

// plainNumber is a comparison of a column with a number that has a name.
var plainNumber = regexp.MustCompile(`\b(?:state|scope|flags) (?:[=&<]|<>|>=|IN \() ?[0-9]`)

func checkNamedNumbers(files []*sourceFile) []finding {
	var found []finding
	for _, f := range files {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if ok && plainNumber.MatchString(lit.Value) {
				found = append(found, finding{key: "number " + f.at(lit.Pos()),
					text: fmt.Sprintf("%s: a state, scope or flag is a number: %s", f.at(lit.Pos()),
						plainNumber.FindString(lit.Value))})
			}
			return true
		})
	}
	return found
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
// begin with prefix.
func constantsNamed(prefix string, files []*sourceFile) map[string]string {
	pkg := constants{}.check(modulePath, files)
	found := make(map[string]string)
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if ok && strings.HasPrefix(name, prefix) && c.Val().Kind() == constant.String {
			found[name] = constant.StringVal(c.Val())
		}
	}
	return found
}

// constants is an importer that knows the packages of the module by their path,
// and of other packages nothing, which their constants do without.
type constants map[string]*types.Package

func (c constants) check(path string, files []*sourceFile) *types.Package {
	var trees []*ast.File
	for _, f := range files {
		trees = append(trees, f.ast)
	}
	config := types.Config{IgnoreFuncBodies: true, Importer: c, Error: func(error) {}}
	pkg, _ := config.Check(path, files[0].fset, trees, nil) // types of other modules are missing, which is meant
	return pkg
}

// Import returns a package of the module, else one that is empty.
func (c constants) Import(path string) (*types.Package, error) {
	if pkg := c[path]; pkg != nil {
		return pkg, nil
	}
	pkg := types.NewPackage(path, filepath.Base(path))
	c[path] = pkg
	all, err := houseFiles()
	if err != nil {
		return nil, err
	}
	dir, ours := strings.CutPrefix(path, modulePath+"/")
	files := slices.DeleteFunc(slices.Clone(all), func(f *sourceFile) bool { return f.dir() != dir || f.test })
	if ours && len(files) > 0 {
		pkg = c.check(path, files)
		pkg.MarkComplete()
		c[path] = pkg
	}
	return pkg, nil
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
