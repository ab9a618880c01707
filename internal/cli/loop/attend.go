package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/gate"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/human"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/record"
)

// attending is how a loop is followed.
type attending struct {
	noWait, asJSON bool
	// since: what happened before is not told; zero: everything is.
	since time.Time
	// aborting: the loop is to end without being done, which is then no failure.
	aborting bool
	bell     func()
}

// attend follows a loop until it ends, pauses, or is to be answered elsewhere,
// and tells how it stands then. It runs the loop in this process, unless somebody
// else does.
func (c *commands) attend(ctx context.Context, b *env.Backend, id perdure.TreeID, how attending) error {
	how.bell = c.bell(b.Config)
	b.Own(id)
	err := b.Follow(ctx, func(ctx context.Context) error { return c.follow(ctx, b, id, how) })
	if ctx.Err() != nil {
		which := name(context.WithoutCancel(ctx), b, id)
		if b.Local == nil {
			c.Note("detached: whoever runs %s goes on; `perdure loop status %s` shows how far it is, `perdure loop pause %s` "+
				"stops it", which, which, which)
		} else {
			c.Note("stopped; `perdure loop resume %s` goes on", which)
		}
		return &env.Exit{Status: env.StatusInterrupted}
	}
	if err != nil {
		return err
	}
	return c.conclude(ctx, b, id, how)
}

// follow prints what happens until there is nothing to follow any more.
func (c *commands) follow(ctx context.Context, b *env.Backend, id perdure.TreeID, how attending) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := c.answers(ctx, b)
	leaving := false // as soon as the handlers were told of the gate
	for e, err := range b.Events(ctx, 0, id) {
		if err != nil {
			return err
		}
		if text := c.line(&e); text != "" && !e.Time.Before(how.since) {
			fmt.Fprintf(c.Err, "%s  %s\n", c.Err.Dim(e.Time.Local().Format(time.TimeOnly)), text)
		}
		if leaving {
			if told, err := told(ctx, b, id); told || err != nil {
				return err
			}
		}
		switch e.Kind {
		case loop.EventEnded:
			how.bell()
			_, err := b.WaitTree(ctx, id) // its last word is still to be written
			return err
		case perdure.EventTreeCompleted, perdure.EventTreeFailed, perdure.EventTreeCancelled:
			return nil
		case loop.EventPaused:
			if over, err := rests(ctx, b, id); over || err != nil {
				how.bell()
				return err
			}
		case perdure.EventLoopGateOpened:
			if leaving, err = c.gateOpened(ctx, b, id, how, answers); err != nil {
				return err
			}
			if told, err := told(ctx, b, id); leaving && told || err != nil {
				return err
			}
		default: // it was told, and goes on
		}
	}
	return ctx.Err()
}

// rests tells whether a loop is paused now: events of the past are told too.
func rests(ctx context.Context, b *env.Backend, id perdure.TreeID) (bool, error) {
	l, err := b.Loop(ctx, id)
	waits := l.Control == record.NoControl || l.Control == record.Pause || l.Control == record.PauseNow
	return err == nil && l.Status == record.Paused && waits, err
}

// told tells whether the loop waits at a gate and whoever is to be told of that was:
// who runs the loop here does not leave before.
func told(ctx context.Context, b *env.Backend, id perdure.TreeID) (bool, error) {
	if b.Local == nil {
		return true, nil
	}
	l, err := b.Loop(ctx, id)
	if err != nil {
		return false, err
	}
	standing, err := state.Read(l.State)
	return standing.Gate > 0, err
}

// gateOpened shows the question. Leaving tells that nobody waits here.
func (c *commands) gateOpened(ctx context.Context, b *env.Backend, id perdure.TreeID, how attending,
	ask chan<- perdure.Gate) (leaving bool, err error) {
	gates, err := b.Gates(ctx, id)
	if err != nil || len(gates) == 0 {
		return false, err
	}
	g := gates[len(gates)-1]
	if g.AnsweredAt != nil || how.aborting {
		return false, nil
	}
	text, err := gate.Text(c.Err, &g, target(ctx, b, id))
	if err != nil {
		return false, err
	}
	how.bell()
	fmt.Fprint(c.Err, text)
	if ask != nil {
		ask <- g
	}
	return how.noWait, nil
}

// answers asks the person at the terminal; nil when there is none.
func (c *commands) answers(ctx context.Context, b *env.Backend) chan<- perdure.Gate {
	if !c.CanAsk() {
		return nil
	}
	open := make(chan perdure.Gate, 1)
	go gate.Prompt(ctx, c.Env, b, open)
	return open
}

// line says in a line what an event tells; empty for those that say nothing to
// people who watch.
func (c *commands) line(e *perdure.Event) string {
	var d struct {
		Iteration   int     `json:"iteration"`
		Agent       string  `json:"agent"`
		Passed      bool    `json:"passed"`
		Quality     *int    `json:"quality"`
		Failing     int     `json:"failing"`
		Regressions int     `json:"regressions"`
		Reason      string  `json:"reason"`
		Why         string  `json:"why"`
		Until       string  `json:"until"`
		Text        string  `json:"text"`
		Message     string  `json:"message"`
		Files       float64 `json:"files"`
		Status      string  `json:"status"`
		Diagnosis   string  `json:"diagnosis"`
		Answer      string  `json:"answer"`
		By          string  `json:"by"`
		Used        float64 `json:"used_percent"`
		Source      string  `json:"source"`
		Level       string  `json:"risk_level"`
		Target      string  `json:"target"`
		Stop        bool    `json:"stop"`
		From        string  `json:"from"`
		To          string  `json:"to"`

		Changes []record.FieldChange `json:"changes"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	switch e.Kind {
	case loop.EventStarted:
		return fmt.Sprintf("a snapshot of %.0f files is taken; the check is run once before anything is changed", d.Files)
	case loop.EventIteration:
		return fmt.Sprintf("iteration %d: %s works", d.Iteration, c.Err.Safe(d.Agent))
	case loop.EventMeasured:
		return measured(d.Iteration, d.Passed, d.Failing, d.Regressions, d.Quality)
	case loop.EventRegression:
		return c.Err.Bold(fmt.Sprintf("iteration %d made something worse: %s", d.Iteration, c.Err.Safe(d.Text)))
	case loop.EventRecovery:
		return fmt.Sprintf("iteration %d: diagnosis %s", d.Iteration, d.Diagnosis)
	case loop.EventRisky:
		answer := map[string]string{"": "seen", "allow": "allowed", "warn": "let through with a warning",
			"gate": "kept for a person", "block": "denied"}[d.Answer]
		return fmt.Sprintf("iteration %d: risky (%s), %s: %s", d.Iteration, c.Err.Safe(d.Level), answer, c.Err.Safe(d.Target))
	case loop.EventLevel:
		if d.From == "" {
			return "" // it has to begin with one
		}
		return fmt.Sprintf("iteration %d: reminders are %s now (%s)", d.Iteration, c.Err.Safe(d.To), c.Err.Safe(d.Reason))
	case loop.EventReassigned:
		return fmt.Sprintf("iteration %d: %s goes on; %s", d.Iteration, c.Err.Safe(d.Agent), c.Err.Safe(d.Why))
	case loop.EventContext:
		what := "the work is recorded"
		if d.Stop {
			what = "a fresh session goes on"
		}
		return fmt.Sprintf("iteration %d: the agent's context is %.0f %% full (%s); %s", d.Iteration, d.Used,
			c.Err.Safe(d.Source), what)
	case loop.EventReverted:
		return fmt.Sprintf("iteration %d is taken back: %s", d.Iteration, c.Err.Safe(d.Why))
	case loop.EventWaiting:
		return fmt.Sprintf("iteration %d waits until %s (%s)", d.Iteration, local(d.Until), c.Err.Safe(d.Why))
	case loop.EventAgentError:
		return fmt.Sprintf("iteration %d: %s", d.Iteration, c.Err.Safe(d.Message))
	case loop.EventWarning:
		return fmt.Sprintf("iteration %d: %s", d.Iteration, c.Err.Safe(d.Message))
	case loop.EventPaused:
		return "paused: " + c.Err.Safe(d.Reason)
	case loop.EventResumed:
		return "goes on"
	case record.EventReopened:
		return "goes on after it had ended"
	case record.EventConfigured:
		return "changed: " + c.Err.Safe(changed(d.Changes))
	case loop.EventSelected:
		return c.Err.Safe(d.Reason)
	case perdure.EventLoopGateAnswered:
		return strings.TrimSpace(fmt.Sprintf("answered: %s %s", d.Answer, c.Err.Safe(d.Reason)))
	default:
		return ""
	}
}

func measured(iteration int, passed bool, failing, regressions int, quality *int) string {
	text := fmt.Sprintf("iteration %d: the check ", iteration)
	switch {
	case passed:
		text += "passes"
	case failing > 0:
		text += "fails (" + human.Count(int64(failing), "test") + ")"
	default:
		text += "fails"
	}
	if quality != nil {
		text += fmt.Sprintf(", quality %d %%", *quality)
	}
	if regressions > 0 {
		text += ", " + human.Count(int64(regressions), "regression")
	}
	return text
}

func local(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return t.Local().Format(time.TimeOnly)
}

// conclude tells how a loop stands, and makes the exit status of it.
func (c *commands) conclude(ctx context.Context, b *env.Backend, id perdure.TreeID, how attending) error {
	l, err := b.Loop(ctx, id)
	if err != nil {
		return err
	}
	if why, err := broken(ctx, b, &l); err != nil {
		return err
	} else if why != "" {
		return &env.Exit{Status: env.StatusFailed, Msg: why}
	}
	if how.asJSON {
		in, lookErr := c.look(ctx, b, l, loopview.ViewDocument, false)
		if lookErr != nil {
			return lookErr
		}
		err = c.PrintJSON(loopview.Document(in))
	} else {
		c.Printf("%s\n", c.Out.Safe(summary(&l)))
	}
	if err != nil {
		return err
	}
	again := "`perdure loop resume " + name(ctx, b, id) + "` goes on"
	switch {
	case l.Status == record.Completed, l.Status == record.Aborted && how.aborting:
		return nil
	case l.Status == record.Failed:
		return &env.Exit{Status: env.StatusFailed}
	case l.Status == record.Aborted:
		return &env.Exit{Status: env.StatusIncomplete}
	case l.Status == record.Paused:
		c.Note("%s", again)
		return &env.Exit{Status: env.StatusIncomplete}
	}
	return &env.Exit{Status: env.StatusGate}
}

// broken tells why a tree ended whose loop did not: its store was removed, or its
// state cannot be read. No step could say so in the loop's record.
func broken(ctx context.Context, b *env.Backend, l *record.Loop) (why string, err error) {
	if l.Status.Ended() {
		return "", nil
	}
	tree, err := b.Tree(ctx, l.Tree)
	if err != nil || !tree.State.Terminal() {
		return "", err
	}
	root, err := b.Task(ctx, tree.Root)
	if err != nil || root.Error == nil {
		return "its tree is " + string(tree.State), err
	}
	return root.Error.Message, nil
}

// summary says in a line how a loop stands.
func summary(l *record.Loop) string {
	var s struct {
		Reason   string `json:"reason"`
		Selected string `json:"selected_reason"`
	}
	if err := json.Unmarshal(l.State, &s); err != nil {
		return string(l.Status)
	}
	text := string(l.Status)
	for _, more := range []string{s.Reason, s.Selected} {
		if more != "" {
			text += ": " + more
		}
	}
	return text
}
