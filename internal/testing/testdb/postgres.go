// Package testdb gives tests databases of their own: a SQLite file, or a
// database on a private PostgreSQL server that lives as long as the test
// process. It is for tests only.
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

// Postgres returns the connection URL of a fresh, empty PostgreSQL database,
// and drops the database when the test ends. It may be called from parallel
// tests.
//
// The first call in a process starts the process's private server: no TCP, a
// Unix socket in a temporary folder. The server stops, and its folder goes,
// when the process ends, in whatever way that happens.
//
// Every call makes a database rather than a schema, because notifications and
// advisory locks belong to a database: tests that shared one would wake and
// block each other. Texts sort by an ICU locale where the server has it, not
// by bytes as in SQLite, so that a query whose order depends on the locale is
// found.
//
// Without PostgreSQL's programs the test is skipped, see [Missing].
func Postgres(t testing.TB) string {
	t.Helper()
	s, err := server()
	if err != nil {
		Missing(t, "postgres", err.Error())
	}
	return s.forTest(t, "template1")
}

// PostgresStore returns the connection URL of a database that holds an empty
// store, and drops the database when the test ends. It is a copy of one that
// was migrated once.
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

// Missing skips the test because a part of the machine that it needs is not
// there, or fails it when the environment variable PERDURE_REQUIRE, a list
// separated by commas, names that part. The reason says what is missing and
// how to get it.
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
	dir  string   // holds data, log and socket
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

// forTest creates a database as a copy of another one and returns its URL. It
// drops the database when the test ends.
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

// url is the connection URL of a database; the socket's folder, which may hold
// any character, is a parameter.
func (s *postgres) url(database string) string {
	params := url.Values{"host": {s.dir}, "port": {"5432"}, "user": {user}, "sslmode": {"disable"}}
	return "postgres:///" + database + "?" + params.Encode()
}

// create copies a database. The strategy, of PostgreSQL 15 and later, copies
// files; their default writes each page to the log, which takes four times as
// long.
func (s *postgres) create(ctx context.Context, name, template string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.connect(ctx); err != nil {
		return err
	}
	statement := "CREATE DATABASE " + name + " TEMPLATE " + template
	if version(s.admin.PgConn().ParameterStatus("server_version")) >= 15 {
		statement += " STRATEGY FILE_COPY"
	}
	_, err := s.admin.Exec(ctx, statement)
	return err
}

func (s *postgres) drop(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.connect(ctx); err != nil {
		return err
	}
	_, err := s.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	return err
}

// connect opens the connection for administration. It needs mu.
func (s *postgres) connect(ctx context.Context) (err error) {
	if s.admin == nil || s.admin.IsClosed() {
		s.admin, err = pgx.Connect(ctx, s.url("postgres"))
	}
	return err
}

// version returns the first number in s, 0 without one.
func version(s string) int {
	digits := strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, err := strconv.Atoi(digits[0])
	if err != nil {
		return 0
	}
	return n
}
