// Package failpoint marks the places where a crash test kills the process.
//
// A place is marked with one line, for example
//
//	failpoint.Hit("blob.after_rename")
//
// In the released program Hit does nothing. Failpoints are on in a program that
// was linked with
//
//	go build -ldflags "-X github.com/perdure/perdure/internal/process/failpoint.enabled=1"
//
// and in a test binary whose TestMain calls [Enable]. Two variables of the
// environment decide what they do there:
//
//   - PERDURE_FAILPOINT="name" or "name:n": the n-th hit of that name (the first if
//     n is missing) kills the process with SIGKILL, so that no deferred function,
//     signal handler or buffer flush runs.
//   - PERDURE_FAILPOINT_LIST=FILE: each hit appends its name to FILE as a line, so
//     that a test can read which places an operation passes and how often.
//
// Names are "component.place" in lower case, for example "blob.before_sync".
package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// enabled is not empty where failpoints are on. The linker sets it, or Enable: a
// build tag would compile everything above this package a second time.
var enabled string

// Enable turns failpoints on. TestMain calls it before it starts anything.
func Enable() { enabled = "1" }

// state is read once from the environment at the first hit.
type state struct {
	mu   sync.Mutex // guards hits and the writes to list
	name string
	n    int // the hit of name that kills
	hits int // hits of name so far
	list *os.File
}

// current is global because Hit takes no other argument than the name.
var current = sync.OnceValue(load)

// Hit passes the place called name: it appends the name to the list, if there is one, and
// kills the process if this is the configured hit. It is safe for concurrent use.
func Hit(name string) {
	if enabled != "" {
		hit(name)
	}
}

func hit(name string) {
	s := current()
	if s.name == "" && s.list == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list != nil {
		if _, err := s.list.WriteString(name + "\n"); err != nil {
			panic(fmt.Sprintf("write failpoint list: %v", err))
		}
	}
	if name != s.name {
		return
	}
	s.hits++
	if s.hits == s.n {
		kill()
		select {} // the signal can arrive a moment later; nothing more must happen here
	}
}

// load panics on invalid settings: a crash test that kills nothing would prove nothing.
func load() *state {
	s := &state{n: 1}
	spec := os.Getenv("PERDURE_FAILPOINT")
	name, count, counted := strings.Cut(spec, ":")
	s.name = name
	if counted {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || name == "" {
			panic(fmt.Sprintf("PERDURE_FAILPOINT %q: want name or name:n with n from 1", spec))
		}
		s.n = n
	}
	path := os.Getenv("PERDURE_FAILPOINT_LIST")
	if path == "" {
		return s
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(fmt.Sprintf("open PERDURE_FAILPOINT_LIST: %v", err))
	}
	s.list = f
	return s
}
