// Package enginetest drives sessions of engines in tests, and has a table that all engines pass.
package enginetest

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
)

// Bench is a session with the replies that it gets.
type Bench struct {
	testing.TB
	engine.Session

	// Asked are the requests of the code but those that read the context.
	Asked []engine.Request
	// Files are the contents of the context, Read the bytes of them that the code read.
	Files   map[string]string
	Read    int
	replies []engine.Reply
}

// Start makes a bench of a session that was started. It skips the test if there is no program or
// no sandbox for it, except in CI, and closes the session at the end.
func Start(t testing.TB, s engine.Session, err error) *Bench {
	t.Helper()
	if f, ok := errors.AsType[*engine.Error](err); ok && os.Getenv("CI") == "" &&
		(f.Kind == engine.KindMissing || f.Kind == engine.KindUnsandboxed) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Bench{TB: t, Session: s}
}

// Text is a reply that is a string.
func Text(s string) engine.Reply {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return engine.Reply{Value: raw}
}

// Try runs code with the seed 7 at the beginning of 2001-09-09.
func (b *Bench) Try(code string, replies ...engine.Reply) (*engine.Done, error) {
	b.Helper()
	b.replies = append(b.replies, replies...)
	ev, err := b.Exec(b.Context(), engine.Block{Code: code, Clock: time.Unix(1_000_000_000, 0), Seed: 7})
	for err == nil && ev.Request != nil {
		var r engine.Reply
		if ev.Request.Function == "read" {
			r = b.read(ev.Request)
		} else if b.Asked = append(b.Asked, *ev.Request); len(b.replies) > 0 {
			r, b.replies = b.replies[0], b.replies[1:]
		}
		ev, err = b.Reply(b.Context(), r)
	}
	return ev.Done, err
}

func (b *Bench) read(r *engine.Request) engine.Reply {
	var a struct {
		File           string
		Offset, Length int
	}
	if err := json.Unmarshal(r.Args, &a); err != nil {
		b.Fatal(err)
	}
	data := b.Files[a.File][a.Offset:]
	b.Read += min(a.Length, len(data))
	raw, err := json.Marshal(map[string][]byte{"data": []byte(data[:min(a.Length, len(data))])})
	if err != nil {
		b.Fatal(err)
	}
	return engine.Reply{Value: raw}
}

// Run runs code whose engine goes on.
func (b *Bench) Run(code string, replies ...engine.Reply) *engine.Done {
	b.Helper()
	d, err := b.Try(code, replies...)
	if err != nil {
		b.Fatalf("%s: %v", code, err)
	}
	return d
}

// Prints runs code and compares what it printed.
func (b *Bench) Prints(code, want string, replies ...engine.Reply) *engine.Done {
	b.Helper()
	d := b.Run(code, replies...)
	if d.Failure != nil || d.Output != want {
		b.Errorf("%s\nprinted %q, want %q; %+v", code, d.Output, want, d.Failure)
	}
	return d
}
