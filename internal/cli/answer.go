package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/gate"
	"github.com/perdure/perdure/internal/view/status"
)

// noteGate notes how to answer the gate that a tree waits at, and reports whether
// there is one.
func (a *app) noteGate(s *client.Status) bool {
	if s.Gate == nil || !s.Gate.Run {
		return false
	}
	a.Note("%s", status.Gate(s.Tree, s.Gate.Number, s.Gate.Waiting))
	return true
}

// gateWatch shows the gates at which all followed trees wait.
type gateWatch struct {
	a     *app
	b     *env.Backend
	shown map[string]bool
	open  chan<- perdure.Gate // nil if the user cannot be asked here
}

// watchGates returns a gateWatch. Its prompt ends with ctx.
func (a *app) watchGates(ctx context.Context, b *env.Backend) *gateWatch {
	return &gateWatch{a: a, b: b, shown: make(map[string]bool), open: gate.Ask(ctx, a.Env, b)}
}

// blocked reports whether all trees wait at gates and none of their tasks can run. It
// then shows each gate once, or returns an error if the user cannot be asked here.
func (w *gateWatch) blocked(ctx context.Context, ids []perdure.TreeID, shown []snapshot, view *progressView) (all bool,
	err error) {
	var waiting []perdure.TreeID
	for _, t := range shown {
		if t.gate == nil || !t.gate.Rests || !t.gate.Run {
			return false, nil
		}
		waiting = append(waiting, t.progress.Tree)
	}
	if len(shown) == maxShownTrees { // there may be more
		for _, id := range ids {
			s, err := w.b.Status(ctx, id)
			if err != nil || !s.State.Terminal() && (s.Gate == nil || !s.Gate.Rests) {
				return false, nil //nolint:nilerr // the next query reports it
			}
		}
	}
	for _, t := range shown {
		key := fmt.Sprintf("%s/%d", t.progress.Tree, t.gate.Number)
		if w.open == nil || w.shown[key] || len(w.open) == cap(w.open) { // ask one at a time
			continue
		}
		w.shown[key] = true
		if text, err := w.text(ctx, t.progress.Tree); err == nil {
			view.say("%s", strings.TrimRight(text, "\n"))
		}
		w.open <- t.gate.Gate // does not block: there is one sender
	}
	if w.open != nil || len(waiting) == 0 {
		return len(waiting) > 0, nil
	}
	return true, &gatesError{waiting}
}

// text returns the question of a tree's open gate.
func (w *gateWatch) text(ctx context.Context, id perdure.TreeID) (string, error) {
	list, err := w.b.Gates(ctx, id)
	if err != nil {
		return "", err
	}
	g, ok := gate.Find(list, 0)
	if !ok {
		return "", nil
	}
	return gate.Text(w.a.Err, g, gate.Run(id), "")
}

// gatesError is the error that trees wait at gates and the user cannot be asked here.
type gatesError struct{ trees []perdure.TreeID }

func (e *gatesError) Error() string {
	return fmt.Sprintf("%d trees wait at a gate", len(e.trees))
}

// printGates prints the open gates of trees, and how to continue.
func (a *app) printGates(ctx context.Context, b *env.Backend, waiting *gatesError) error {
	w := &gateWatch{a: a, b: b}
	for _, id := range waiting.trees {
		text, err := w.text(ctx, id)
		if err != nil {
			return err
		}
		fmt.Fprint(a.Err, text)
		if b.Local == nil {
			a.Note("%s waits at a gate; the daemon continues after the answer", id)
		} else {
			a.Note("%s waits at a gate; after the answer, `perdure resume %s` continues", id, id)
		}
	}
	return &env.Exit{Status: env.StatusGate}
}
