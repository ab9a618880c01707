package cli

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/rlm"
)

// open returns the project's store as a command sees it.
func (p *project) open() *env.Backend {
	p.t.Helper()
	a := newApp(env.Process{Cwd: p.dir})
	l, err := config.Load(config.Sources{Dir: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	b, err := a.Open(p.t.Context(), l, env.Read)
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

func treeIDOf(t *testing.T, text string) perdure.TreeID {
	t.Helper()
	id, err := perdure.ParseTreeID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func durationText(d rlm.Duration) string { return time.Duration(d).String() }
