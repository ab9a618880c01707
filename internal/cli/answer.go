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

// tellGate says how to answer the gate that a tree waits at, if it does.
func (a *app) tellGate(s *client.Status) bool {
	if s.Gate == nil || !s.Gate.Run {
		return false
	}
	a.Note("%s", status.Gate(s.Tree, s.Gate.Number, s.Gate.Waiting))
	return true
}

// gateWatch shows a person who follows trees the gates that hold them up.
type gateWatch struct {
	a     *app
	b     *env.Backend
	shown map[string]bool
	open  chan<- perdure.Gate // nil when nobody can be asked here
}

// watchGates begins to look for gates; what it starts ends with ctx.
func (a *app) watchGates(ctx context.Context, b *env.Backend) *gateWatch {
	w := &gateWatch{a: a, b: b, shown: make(map[string]bool)}
	if a.CanAsk() {
		open := make(chan perdure.Gate, 1)
		w.open = open
		go gate.Prompt(ctx, a.Env, b, open)
	}
	return w
}

// look tells whether all trees rest: each waits at a gate, and nothing else of it
// goes on. Then it shows the person here what is asked, once; when there is none it
// is an error.
func (w *gateWatch) look(ctx context.Context, ids []perdure.TreeID, shown []snapshot, view *progressView) (rest bool,
	err error) {
	var resting []perdure.TreeID
	for _, t := range shown {
		if t.gate == nil || !t.gate.Rests || !t.gate.Run {
			return false, nil
		}
		resting = append(resting, t.progress.Tree)
	}
	if len(shown) == maxShownTrees { // there may be more
		for _, id := range ids {
			s, err := w.b.Status(ctx, id)
			if err != nil || !s.State.Terminal() && (s.Gate == nil || !s.Gate.Rests) {
				return false, nil //nolint:nilerr // it is only a look
			}
		}
	}
	for _, t := range shown {
		key := fmt.Sprintf("%s/%d", t.progress.Tree, t.gate.Number)
		if w.open == nil || w.shown[key] || len(w.open) == cap(w.open) { // one at a time
			continue
		}
		w.shown[key] = true
		if text, err := w.text(ctx, t.progress.Tree); err == nil {
			view.say("%s", strings.TrimRight(text, "\n"))
		}
		w.open <- t.gate.Gate // there is room: nobody else sends
	}
	if w.open != nil || len(resting) == 0 {
		return len(resting) > 0, nil
	}
	return true, &restingError{resting}
}

// text is what the open gate of a tree asks.
func (w *gateWatch) text(ctx context.Context, id perdure.TreeID) (string, error) {
	list, err := w.b.Gates(ctx, id)
	if err != nil {
		return "", err
	}
	g, ok := gate.Find(list, 0)
	if !ok {
		return "", nil
	}
	return gate.Text(w.a.Err, g, gate.Run(id))
}

// restingError is that trees wait for a person, and nobody is here.
type restingError struct{ trees []perdure.TreeID }

func (e *restingError) Error() string {
	return fmt.Sprintf("%d trees wait at a gate", len(e.trees))
}

// tellResting shows what is asked, for an answer from elsewhere.
func (a *app) tellResting(ctx context.Context, b *env.Backend, rest *restingError) error {
	w := &gateWatch{a: a, b: b}
	for _, id := range rest.trees {
		text, err := w.text(ctx, id)
		if err != nil {
			return err
		}
		fmt.Fprint(a.Err, text)
		if b.Local == nil {
			a.Note("%s waits at a gate; the daemon goes on with it when it is answered", id)
		} else {
			a.Note("%s waits at a gate; `perdure resume %s` goes on when it is answered", id, id)
		}
	}
	return &env.Exit{Status: env.StatusGate}
}
