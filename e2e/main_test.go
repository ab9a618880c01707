package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/perdure/perdure/internal/cli"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/effort"
	"github.com/perdure/perdure/internal/testing/testenv"
)

// TestMain makes this test binary the program itself when it is called
// perdure: scripts and crash tests start it as a process of its own.
func TestMain(m *testing.M) {
	guard.Enter()
	if role := os.Getenv(roleEnv); role != "" {
		if err := playRole(role); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	testscript.Main(tests{m}, map[string]func(){"perdure": func() {
		cwd, err := os.Getwd()
		if err != nil {
			cwd = ""
		}
		os.Exit(cli.Main(context.Background(), env.System(cwd)))
	}, "claude": func() {
		if err := playClaude(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
	}})
}

// realAgentsVar names the folder into which npm installed the clients (make test/agents);
// without it they are not tested.
const realAgentsVar = "PERDURE_TEST_AGENTS"

// tests runs the tests and removes their shared folder.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	effort.Parallel(8)
	_ = givenEnv()
	testenv.Set()
	if os.Getenv(realAgentsVar) == "" { // real agents need node
		testenv.HideRunners()
	}
	for name, value := range map[string]string{"PERDURE_TRUST": "1", // tests write settings
		"PERDURE_LOOP_APPROVER": "any", // tests have no terminal
		"XDG_CONFIG_HOME":       filepath.Join(sharedFolder(), "config"),
		"XDG_STATE_HOME":        filepath.Join(sharedFolder(), "state")} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	status := t.m.Run()
	if err := os.RemoveAll(sharedFolder()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	return status
}

// sharedFolder returns a folder for files that the tests of one process share.
var sharedFolder = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "perdure-e2e-")
	if err != nil {
		panic(err)
	}
	return dir
})

// programFile builds the program as its users have it, but with failpoints, once.
var programFile = sync.OnceValues(func() (string, error) {
	return filepath.Join(sharedFolder(), "perdure"),
		build(sharedFolder()+"/", "-X github.com/perdure/perdure/internal/process/failpoint.enabled=1", "../cmd/perdure")
})

// pathWithProgram is the search path of commands, with the program first.
func pathWithProgram(t *testing.T) string {
	t.Helper()
	program, err := programFile()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(program) + string(os.PathListSeparator) + os.Getenv("PATH")
}

// givenEnv is the environment that the tests were started with, for builds: without the flags of
// the compiler, which are for the race detector and would have packages compiled once more.
var givenEnv = sync.OnceValue(func() []string {
	flags := slices.DeleteFunc(strings.Fields(os.Getenv("GOFLAGS")),
		func(flag string) bool { return strings.HasPrefix(flag, "-gcflags") })
	return append(os.Environ(), "GOFLAGS="+strings.Join(flags, " "))
})

// build links programs into a folder, from packages that are compiled for the tests
// anyway. It leaves out the race detector, with which they take ten times as long.
func build(folder, ldflags string, packages ...string) error {
	args := []string{"build", "-race=false", "-ldflags", "-s -w " + ldflags, "-o", folder}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Env = givenEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build %v: %w\n%s", packages, err, out)
	}
	return nil
}

// number returns the number of rounds of a test: the value of an environment variable,
// else one number in the ordinary run and another in the long run.
func number(t *testing.T, name string, ordinary, long int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return effort.Of(ordinary, long)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%q is not a number", name, text)
	}
	return n
}

// passagesToKill are the passages of a failpoint, of those that there are, to kill a
// process at: one that the seed chooses in the ordinary run, all in the long run.
func passagesToKill(rng *rand.Rand, times int) []int {
	chosen := 1 + rng.IntN(times)
	if !effort.Long() {
		return []int{chosen}
	}
	all := make([]int, times)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// seed repeats the random choices of a test: it is PERDURE_CRASH_SEED, or drawn
// when that is 0 or not set.
func seed(t *testing.T) int {
	t.Helper()
	n := number(t, "PERDURE_CRASH_SEED", 0, 0)
	if n == 0 {
		n = int(time.Now().UnixNano() % 1e9)
	}
	t.Logf("PERDURE_CRASH_SEED=%d", n)
	return n
}
