//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Enabled tells whether this binary was built with the failpoint tag.
const Enabled = true

// state is read once from the environment at the first hit.
type state struct {
	mu   sync.Mutex // guards hits and the writes to list
	name string
	n    int // the hit of name that kills
	hits int // hits of name so far
	list *os.File
}

// current is the one global of this package: Hit has nothing to hang it on.
var current = sync.OnceValue(load)

// Hit passes the place called name: it is written to the list when one was
// asked for, and the process dies here when this is the hit asked for. It is
// safe for concurrent use.
func Hit(name string) {
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
		select {} // the signal may arrive a moment later; nothing more may happen here
	}
}

// load panics on settings it cannot follow: a crash test that silently kills
// nothing would prove nothing.
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
