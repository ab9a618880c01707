package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/perdure/perdure/internal/storage/filelock"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/schematest"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/model/mock"
)

// Each script tests one promise of the program. Those in testdata/script run once; those
// in testdata/script/both run twice, without and with a daemon, with the same result.

func TestScripts(t *testing.T) {
	t.Parallel()
	run(t, "testdata/script/*.txtar", setting{})
}

func TestScriptsAlone(t *testing.T) {
	t.Parallel()
	run(t, bothScripts, setting{})
}

func TestScriptsWithDaemon(t *testing.T) {
	t.Parallel()
	run(t, bothScripts, setting{daemon: true})
}

func TestScriptsPostgres(t *testing.T) {
	t.Parallel()
	for _, name := range scripts(t, bothScripts) {
		if !effort.Long() && refused(name) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			run(t, name, setting{store: testdb.PostgresStore(t)})
		})
	}
}

// refused reports whether a script is about bad input, which is refused whatever the
// database is. The long run runs these scripts on PostgreSQL too.
func refused(name string) bool {
	switch filepath.Base(name) {
	case "badinput.txtar", "badmodels.txtar", "badvariables.txtar":
		return true
	default:
		return false
	}
}

const bothScripts = "testdata/script/both/*.txtar"

// setting is the environment in which scripts run.
type setting struct {
	daemon bool
	store  string // of PostgreSQL
}

func scripts(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %s, %v", pattern, err)
	}
	return files
}

func run(t *testing.T, pattern string, s setting) {
	t.Helper()
	p := params(s)
	p.Files = scripts(t, pattern)
	testscript.Run(t, p)
}

// patience limits every wait of a script. No test measures it.
const patience = 4 * time.Minute

func params(s setting) testscript.Params {
	return testscript.Params{
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("NO_COLOR", "1")
			// The commands are the program as it is built for its users. Daemons
			// are this test binary, with the race detector if it has it: it takes
			// ten times as long, which the hundreds of commands must not.
			bin, err := programFile()
			if err != nil {
				return err
			}
			env.Setenv("PATH", filepath.Dir(bin)+string(os.PathListSeparator)+env.Getenv("PATH"))
			// The socket's path has to be short; the scripts' folders are not.
			short, err := os.MkdirTemp("", "pd")
			if err != nil {
				return err
			}
			env.Defer(func() { _ = os.RemoveAll(short) })
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(short, "config"))
			env.Setenv("PERDURE_TRUST", "1")           // the scripts write settings; trust.txtar tries without
			env.Setenv("PERDURE_LOOP_APPROVER", "any") // the scripts have no terminal; gate_approver.txtar tries without
			env.Setenv("PERDURE_SOCKET", filepath.Join(short, "s"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(short, "state"))
			env.Setenv("AIWG_SOCKET", filepath.Join(short, "aiwg", "s"))
			if s.store != "" {
				env.Setenv("PERDURE_STORE", s.store)
				env.Setenv("PERDURE_LOOP_ENV", "PERDURE_STORE") // for the commands that agents run
			}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "daemon":
				return s.daemon, nil
			case "postgres":
				return s.store != "", nil
			}
			return false, errors.New("unknown condition " + cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"daemon": func(ts *testscript.TestScript, _ bool, args []string) {
				if s.daemon {
					startDaemon(ts, args)
				}
			},
			"serve":       func(ts *testscript.TestScript, _ bool, args []string) { startDaemon(ts, args) },
			"status":      wantStatus,
			"validate":    validate,
			"waitfor":     waitFor,
			"json":        jsonValue,
			"tree-id":     treeID,
			"modelserver": modelServer,
			"rpc":         sendRPC,
			"released":    released,
			"ends-as":     endsAs,
			"waitfor-socket": func(ts *testscript.TestScript, _ bool, _ []string) {
				poll(ts, "the daemon answers", func() bool {
					conn, err := net.Dial("unix", ts.Getenv("PERDURE_SOCKET"))
					if err == nil {
						_ = conn.Close()
					}
					return err == nil
				})
			},
		},
	}
}

// startDaemon runs perdure serve in the script's current folder and waits
// until it answers. It is stopped, and has to stop well, when the script ends.
func startDaemon(ts *testscript.TestScript, args []string) {
	program, err := exec.LookPath("perdure")
	ts.Check(err)
	log, err := os.Create(ts.MkAbs("daemon.log"))
	ts.Check(err)
	cmd := exec.Command(program, append([]string{"serve"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environ(ts)
	cmd.Stdout, cmd.Stderr = log, log
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ts.Defer(func() {
		defer log.Close()
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case err := <-ended:
			if err != nil && !errors.Is(err, os.ErrProcessDone) {
				text, _ := os.ReadFile(log.Name())
				ts.Logf("daemon: %v\n%s", err, text)
			}
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-ended //nolint:errcheck // it was killed
		}
	})
	poll(ts, "the daemon listens", func() bool {
		select {
		case err := <-ended:
			ended <- err
			text, _ := os.ReadFile(log.Name())
			ts.Fatalf("the daemon ended: %v\n%s", err, text)
		default:
		}
		text, _ := os.ReadFile(log.Name())
		return strings.Contains(string(text), "listening")
	})
}

func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "NO_COLOR", "PERDURE_SOCKET", "PERDURE_DIR", "PERDURE_STORE",
		"PERDURE_DRAIN_TIMEOUT", "PERDURE_TRUST", "XDG_CONFIG_HOME", "XDG_STATE_HOME",
		"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "WORK"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// poll waits until something is so.
func poll(ts *testscript.TestScript, what string, so func() bool) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !so() {
		select {
		case <-ctx.Done():
			ts.Fatalf("waited %v until %s", patience, what)
		case <-tick.C:
		}
	}
}

// wantStatus runs a program and checks its exit status:
//
//	status 4 perdure status tree-00000000
func wantStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// validate checks that a file, or what was printed last, is JSON of a schema
// that the program publishes; each line is a document:
//
//	validate status stdout
func validate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: validate SCHEMA FILE")
	}
	text := ts.ReadFile(args[1])
	program, err := exec.LookPath("perdure")
	ts.Check(err)
	schema, err := exec.Command(program, "schema", args[0]).Output()
	ts.Check(err)
	compiled, err := schematest.Compile(schema)
	ts.Check(err)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		if err := compiled.ValidateJSON([]byte(line)); err != nil {
			ts.Fatalf("%s is not of schema %s: %v", line, args[0], err)
		}
	}
}

// waitFor waits until a file exists, or contains a text:
//
//	waitfor held
//	waitfor log text
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: waitfor FILE [TEXT]")
	}
	name := ts.MkAbs(args[0])
	poll(ts, args[0]+" is there", func() bool {
		text, err := os.ReadFile(name)
		return err == nil && (len(args) == 1 || strings.Contains(string(text), args[1]))
	})
}

// endsAs waits until a tree is in a state:
//
//	ends-as TREE STATE
func endsAs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends-as TREE STATE")
	}
	poll(ts, args[0]+" is "+args[1], func() bool {
		ts.Check(ts.Exec("perdure", "status", args[0], "--json"))
		return strings.Contains(ts.ReadFile("stdout"), `"state":"`+args[1]+`"`)
	})
}

// released waits until no process holds a session of the store, which a killed one
// does until its guard has ended the programs that it ran:
//
//	released
func released(ts *testscript.TestScript, _ bool, _ []string) {
	poll(ts, "no session is held", func() bool {
		names, err := filepath.Glob(ts.MkAbs(".perdure/sessions/sess-*"))
		ts.Check(err)
		for _, name := range names {
			f, err := os.Open(name)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			ts.Check(err)
			held, err := filelock.Held(f)
			_ = f.Close()
			ts.Check(err)
			if held {
				return false
			}
		}
		return true
	})
}

// jsonValue checks a value of the JSON printed last, or sets a variable to it:
//
//	json usage.calls = 3
//	json tree_id -> TREE
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 || args[1] != "=" && args[1] != "->" {
		ts.Fatalf("usage: json PATH = VALUE, or json PATH -> VARIABLE")
	}
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &value))
	for _, key := range strings.Split(args[0], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			switch {
			case key == "length":
				value = float64(len(v))
			case err != nil || i >= len(v):
				ts.Fatalf("%s: no element %q in a list of %d", args[0], key, len(v))
			default:
				value = v[i]
			}
		default:
			ts.Fatalf("%s: %q is in nothing", args[0], key)
		}
	}
	text, ok := value.(string)
	if !ok {
		b, err := json.Marshal(value)
		ts.Check(err)
		text = string(b)
	}
	if args[1] == "->" {
		ts.Setenv(args[2], text)
		return
	}
	if (text == args[2]) == neg {
		ts.Fatalf("%s is %s", args[0], text)
	}
}

// treeID sets a variable to the tree that a file, or what was printed last,
// names first:
//
//	tree-id stderr TREE
func treeID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tree-id FILE VARIABLE")
	}
	text := ts.ReadFile(args[0])
	_, rest, found := strings.Cut(text, "tree-")
	if !found || len(rest) < 8 {
		ts.Fatalf("%s names no tree: %s", args[0], text)
	}
	ts.Setenv(args[1], "tree-"+rest[:8])
}

// modelServer starts a server that speaks the OpenAI protocol and answers from
// a script of model/mock, and sets a variable to its address:
//
//	modelserver script.yaml URL
func modelServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: modelserver SCRIPT VARIABLE")
	}
	script, err := mock.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	srv := httptest.NewServer(mock.NewServer(script))
	ts.Defer(srv.Close)
	ts.Setenv(args[1], srv.URL+"/v1")
}
