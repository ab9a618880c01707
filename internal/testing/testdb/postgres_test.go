package testdb_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/testing/testdb"
)

// printDSN makes the test binary print a database's URL and then panic; see
// TestServerGoesWithTheProcess.
const printDSN = "PERDURE_TESTDB_PRINT"

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return conn
}

func TestPostgresFresh(t *testing.T) {
	t.Parallel()
	for range 3 {
		t.Run("database", func(t *testing.T) {
			t.Parallel()
			conn := connect(t, testdb.Postgres(t))
			if _, err := conn.Exec(t.Context(), "CREATE TABLE mine (id BIGINT)"); err != nil {
				t.Fatalf("a table of the same name in each database: %v", err)
			}
		})
	}
}

func TestPostgresSettings(t *testing.T) {
	t.Parallel()
	conn := connect(t, testdb.Postgres(t))
	for name, want := range map[string]string{
		"listen_addresses": "",
		"max_connections":  "200",
		"server_encoding":  "UTF8",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil {
			t.Fatalf("read setting: %v", err)
		}
		if got != want {
			t.Errorf("setting %s = %q, want %q", name, got, want)
		}
	}
}

func TestPostgresDropped(t *testing.T) {
	t.Parallel()
	var dsn string
	t.Run("use", func(t *testing.T) {
		dsn = testdb.Postgres(t)
		connect(t, dsn)
	})
	if dsn == "" {
		t.Skip("no server")
	}
	if conn, err := pgx.Connect(t.Context(), dsn); err == nil {
		conn.Close(t.Context())
		t.Error("the database is still there after its test")
	}
}

// TestServerGoesWithTheProcess lets a process panic in the middle of a test
// and waits until nothing of its server is left.
func TestServerGoesWithTheProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv(printDSN) != "" {
		dsn := testdb.Postgres(t)
		if _, err := os.Stdout.WriteString("dsn=" + dsn + "\n"); err != nil {
			t.Fatal(err)
		}
		panic("in the middle of a test")
	}
	testdb.Postgres(t) // skips without the programs

	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), printDSN+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the process did not panic:\n%s", out)
	}
	_, rest, ok := strings.Cut(string(out), "dsn=")
	if !ok {
		t.Fatalf("the process printed no URL:\n%s", out)
	}
	config, err := pgx.ParseConfig(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	if err != nil {
		t.Fatalf("parse the printed URL: %v", err)
	}
	// The folder goes last, after the server ended. If it never does, the
	// test binary's own time-out ends this.
	for tick := time.Tick(20 * time.Millisecond); ; <-tick {
		if _, err := os.Stat(config.Host); os.IsNotExist(err) {
			return
		}
	}
}

// recorder is a testing.TB that notes how a test would end.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper()               {}
func (r *recorder) Skipf(string, ...any)  { r.ended = "skipped" }
func (r *recorder) Fatalf(string, ...any) { r.ended = "failed"; panic(r) }

func (r *recorder) missing(part string) {
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
	}()
	testdb.Missing(r, part, "it is not there")
}

func TestMissing(t *testing.T) {
	for _, test := range []struct{ require, want string }{
		{"", "skipped"},
		{"strace", "skipped"},
		{"postgres", "failed"},
		{"strace,postgres", "failed"},
		{"strace, postgres", "failed"},
		{"postgresql", "skipped"},
	} {
		t.Run(test.require, func(t *testing.T) {
			t.Setenv("PERDURE_REQUIRE", test.require)
			r := &recorder{TB: t}
			r.missing("postgres")
			if r.ended != test.want {
				t.Errorf("with PERDURE_REQUIRE=%q the test was %s, want %s", test.require, r.ended, test.want)
			}
		})
	}
}
