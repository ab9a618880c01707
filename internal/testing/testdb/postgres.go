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
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
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
	ctx := t.Context()
	name, err := s.create(ctx)
	if err != nil {
		t.Fatalf("create a test database: %v", err)
	}
	t.Cleanup(func() {
		if err := s.drop(context.WithoutCancel(ctx), name); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	return s.url(name)
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

	mu    sync.Mutex // guards what follows
	admin *pgx.Conn  // opened by the first use
	made  int        // databases so far
}

// url is the connection URL of a database; the socket's folder, which may hold
// any character, is a parameter.
func (s *postgres) url(database string) string {
	params := url.Values{"host": {s.dir}, "port": {"5432"}, "user": {user}, "sslmode": {"disable"}}
	return "postgres:///" + database + "?" + params.Encode()
}

func (s *postgres) create(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	name := fmt.Sprintf("test%d", s.made)
	return name, s.exec(ctx, "CREATE DATABASE "+name)
}

func (s *postgres) drop(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

// exec needs mu.
func (s *postgres) exec(ctx context.Context, statement string) error {
	if s.admin == nil || s.admin.IsClosed() {
		conn, err := pgx.Connect(ctx, s.url("postgres"))
		if err != nil {
			return err
		}
		s.admin = conn
	}
	_, err := s.admin.Exec(ctx, statement)
	return err
}
