// Package testdb creates databases for single tests: a SQLite file, or a database on a
// private PostgreSQL server that runs as long as the test process. It is for tests only.
package testdb

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure"
)

// user is the server's only role.
const user = "perdure"

// Postgres returns the connection URL of a new, empty PostgreSQL database, which is dropped
// when the test ends. It may be called from parallel tests.
//
// The first call in a process starts the private server of the process: no TCP, a Unix socket
// in a temporary folder. The server stops, and its folder is removed, when the process ends,
// also by a crash.
//
// Every call creates a database and not a schema, because notifications and advisory locks
// belong to a database: tests in the same one would wake and block each other. Text is
// sorted by an ICU locale if the server has it, and not by bytes as in SQLite, to find
// queries whose order depends on the locale.
//
// Without the PostgreSQL programs the test is skipped; see [Missing].
func Postgres(t testing.TB) string {
	t.Helper()
	s, err := server()
	if err != nil {
		Missing(t, "postgres", err.Error())
	}
	return s.forTest(t, "template1")
}

// PostgresStore returns the connection URL of a database with an empty store, which is dropped
// when the test ends. It is a copy of a migrated database.
func PostgresStore(t testing.TB) string {
	t.Helper()
	s, err := server()
	if err != nil {
		Missing(t, "postgres", err.Error())
	}
	s.migrate.Do(func() { s.migrateErr = s.makeTemplate(context.WithoutCancel(t.Context())) })
	if s.migrateErr != nil {
		t.Fatalf("create the template of the test databases: %v", s.migrateErr)
	}
	return s.forTest(t, storeTemplate)
}

// Missing skips the test because the machine lacks a part that it needs, or fails it if the
// environment variable PERDURE_REQUIRE, a list separated by commas, names that part. The
// reason is what is missing and how to install it.
func Missing(t testing.TB, part, reason string) {
	t.Helper()
	required := strings.FieldsFunc(os.Getenv("PERDURE_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
	if slices.Contains(required, part) {
		t.Fatalf("%s is required (PERDURE_REQUIRE): %s", part, reason)
	}
	t.Skipf("NOT TESTED without %s: %s", part, reason)
}

// server starts the process's server on the first call.
var server = sync.OnceValues(startServer)

// postgres is a running private server.
type postgres struct {
	dir  string   // of data, log and socket
	life *os.File // the guard stops the server when this is closed

	migrate    sync.Once // guards migrateErr and the database storeTemplate
	migrateErr error

	mu    sync.Mutex // guards the fields below
	admin *pgx.Conn  // opened by the first use
	made  int        // databases so far
}

// storeTemplate is the database with an empty store.
const storeTemplate = "store"

func (s *postgres) makeTemplate(ctx context.Context) error {
	if err := s.create(ctx, storeTemplate, "template1"); err != nil {
		return err
	}
	store, err := perdure.Open(ctx, perdure.Config{DSN: s.url(storeTemplate)})
	if err != nil {
		return err
	}
	return store.Close()
}

// forTest creates a database as a copy of another one and returns its URL. The database is
// dropped when the test ends.
func (s *postgres) forTest(t testing.TB, template string) string {
	t.Helper()
	s.mu.Lock()
	s.made++
	name := fmt.Sprintf("test%d", s.made)
	s.mu.Unlock()
	ctx := t.Context()
	if err := s.create(ctx, name, template); err != nil {
		t.Fatalf("create a test database: %v", err)
	}
	t.Cleanup(func() {
		if err := s.drop(context.WithoutCancel(ctx), name); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	return s.url(name)
}

// url returns the connection URL of a database. The folder of the socket is a parameter,
// because it may have any character.
func (s *postgres) url(database string) string {
	params := url.Values{"host": {s.dir}, "port": {"5432"}, "user": {user}, "sslmode": {"disable"}}
	return "postgres:///" + database + "?" + params.Encode()
}

// create copies a database. The strategy, of PostgreSQL 15 and later, copies files; their
// default writes each page to the log, which takes four times as long.
func (s *postgres) create(ctx context.Context, name, template string) error {
	return s.exec(ctx, func(admin *pgx.Conn) string {
		statement := "CREATE DATABASE " + name + " TEMPLATE " + template
		if version(admin.PgConn().ParameterStatus("server_version")) >= 15 {
			statement += " STRATEGY FILE_COPY"
		}
		return statement
	})
}

func (s *postgres) drop(ctx context.Context, name string) error {
	return s.exec(ctx, func(*pgx.Conn) string { return "DROP DATABASE IF EXISTS " + name + " WITH (FORCE)" })
}

// exec runs a statement on the connection for administration.
func (s *postgres) exec(ctx context.Context, statement func(admin *pgx.Conn) string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin == nil || s.admin.IsClosed() {
		if s.admin, err = pgx.Connect(ctx, s.url("postgres")); err != nil {
			return err
		}
	}
	_, err = s.admin.Exec(ctx, statement(s.admin))
	return err
}

// version returns the first number in s; 0 without one.
func version(s string) int {
	digits := strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[0]) // only digits
	return n
}
