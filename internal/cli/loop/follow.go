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

// followConfig configures how a loop is followed.
type followConfig struct {
	// noWait returns at a gate instead of waiting for the answer.
	noWait bool
	// since is the time of the first event to print; zero prints all.
	since time.Time
	// aborting reports that the command aborts the loop, which then is not a failure.
	aborting bool
	// bell rings the terminal's bell if the settings ask for it.
	bell func()
	// shown is the token that was shown last.
	shown string
}

// attend follows a loop until it ends, pauses or waits at a gate that is answered
// elsewhere, and prints its state. It runs the loop in this process if b executes here.
func (c *commands) attend(ctx context.Context, b *env.Backend, id perdure.TreeID, how followConfig) error {
	how.bell = c.bell(b.Config)
	b.Own(id)
	err := b.Follow(ctx, func(ctx context.Context) error { return c.follow(ctx, b, id, &how) })
	if ctx.Err() != nil {
		which := name(context.WithoutCancel(ctx), b, id)
		if b.Local == nil {
			c.Note("detached: %s continues; `perdure loop status %s` shows its progress, `perdure loop pause %s` pauses it",
				which, which, which)
		} else {
			c.Note("stopped; `perdure loop resume %s` continues", which)
		}
		return &env.Exit{Status: env.StatusInterrupted}
	}
	if err != nil {
		return err
	}
	c.showToken(ctx, b, id, &how)
	return c.conclude(ctx, b, id, how)
}

// follow prints events until the loop ends, pauses or waits at a gate.
func (c *commands) follow(ctx context.Context, b *env.Backend, id perdure.TreeID, how *followConfig) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := gate.Ask(ctx, c.Env, b)
	leaving := false // leave after the handlers of the gate were called
	for e, err := range b.Events(ctx, 0, id) {
		if err != nil {
			return err
		}
		if text := c.line(&e); text != "" && !e.Time.Before(how.since) {
			fmt.Fprintf(c.Err, "%s  %s\n", c.Err.Dim(e.Time.Local().Format(time.TimeOnly)), text)
		}
		if leaving {
			if done, err := gateReported(ctx, b, id); done || err != nil {
				return err
			}
		}
		switch e.Kind {
		case loop.EventEnded:
			l, err := b.Loop(ctx, id)
			if err != nil {
				return err
			}
			if l.Status.Ended() { // else the loop was resumed after this event
				how.bell()
				_, err = b.WaitTree(ctx, id) // the tree ends after the loop
				return err
			}
		case perdure.EventTreeCompleted, perdure.EventTreeFailed, perdure.EventTreeCancelled:
			if tree, err := b.Tree(ctx, id); err != nil || tree.State.Terminal() {
				return err
			}
		case loop.EventPaused:
			if over, err := isPaused(ctx, b, id); over || err != nil {
				how.bell()
				return err
			}
		case perdure.EventLoopGateOpened:
			if leaving, err = c.gateOpened(ctx, b, id, how, answers); err != nil {
				return err
			}
			if done, err := gateReported(ctx, b, id); leaving && done || err != nil {
				return err
			}
		case perdure.EventLoopGateToken:
			c.showToken(ctx, b, id, how)
		default: // the loop continues
		}
	}
	return ctx.Err()
}

// token returns the token of a gate that this process has made, if standard error is a
// terminal: an agent can read a file.
func (c *commands) token(ctx context.Context, b *env.Backend, id perdure.TreeID, number int) string {
	if !c.Err.Terminal || b.Local == nil {
		return ""
	}
	return b.Local.GateToken(ctx, id, number)
}

// showToken shows the token of the open gate if it was not shown before: this process has
// replaced that of an earlier one.
func (c *commands) showToken(ctx context.Context, b *env.Backend, id perdure.TreeID, how *followConfig) {
	gates, err := b.Gates(ctx, id)
	if err != nil {
		return // the next request reports it
	}
	g, open := gate.Find(gates, 0)
	if !open {
		return
	}
	if token := c.token(ctx, b, id, g.Number); token != "" && token != how.shown {
		how.shown = token
		fmt.Fprintf(c.Err, "gate %d: %s; earlier ones are not valid any more\n", g.Number, gate.Token(token))
	}
}

// isPaused reports whether a loop is paused now. The event can be an old one.
func isPaused(ctx context.Context, b *env.Backend, id perdure.TreeID) (bool, error) {
	l, err := b.Loop(ctx, id)
	waits := l.Control == record.NoControl || l.Control == record.Pause || l.Control == record.PauseNow
	return err == nil && l.Status == record.Paused && waits, err
}

// gateReported reports whether the loop waits at a gate and its handlers were called. The
// process that runs the loop must not exit before.
func gateReported(ctx context.Context, b *env.Backend, id perdure.TreeID) (bool, error) {
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

// gateOpened prints the gate. It reports whether to leave instead of waiting.
func (c *commands) gateOpened(ctx context.Context, b *env.Backend, id perdure.TreeID, how *followConfig,
	ask chan<- perdure.Gate) (leaving bool, err error) {
	gates, err := b.Gates(ctx, id)
	if err != nil || len(gates) == 0 {
		return false, err
	}
	g := gates[len(gates)-1]
	if g.AnsweredAt != nil || how.aborting {
		return false, nil
	}
	how.shown = c.token(ctx, b, id, g.Number)
	text, err := gate.Text(c.Err, &g, target(ctx, b, id), how.shown)
	if err != nil {
		return false, err
	}
	how.bell()
	fmt.Fprint(c.Err, text)
	switch {
	case ask != nil:
		ask <- g
	case !how.noWait && b.Local != nil:
		c.Note("waiting for an answer; Ctrl-C stops, and `perdure loop resume %s` continues", name(ctx, b, id))
	}
	return how.noWait, nil
}

// line returns an event as one line, or "" for events that are not shown.
func (c *commands) line(e *perdure.Event) string {
	var d struct {
		Iteration   int     `json:"iteration"`
		Agent       string  `json:"agent"`
		Passed      bool    `json:"passed"`
		Skipped     bool    `json:"skipped"`
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
		Gate        int     `json:"gate"`
		PID         int     `json:"pid"`
		Program     string  `json:"program"`
		From        string  `json:"from"`
		To          string  `json:"to"`

		Variables int64    `json:"variables"`
		Names     []string `json:"names"`

		Changes []record.FieldChange `json:"changes"`
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	switch e.Kind {
	case loop.EventStarted:
		return "baseline: snapshot of " + human.Count(int64(d.Files), "file") + "; running the check"
	case loop.EventWithheld:
		return c.Err.Safe(withheld(d.Variables, d.Names))
	case loop.EventIteration:
		return fmt.Sprintf("iteration %d: %s started", d.Iteration, c.Err.Safe(d.Agent))
	case loop.EventMeasured:
		if d.Skipped {
			return fmt.Sprintf("iteration %d: check was not run", d.Iteration)
		}
		return measured(d.Iteration, d.Passed, d.Failing, d.Regressions, d.Quality)
	case loop.EventRegression:
		return c.Err.Bold(fmt.Sprintf("iteration %d: regression: %s", d.Iteration, c.Err.Safe(d.Text)))
	case loop.EventRecovery:
		return fmt.Sprintf("iteration %d: diagnosis %s", d.Iteration, d.Diagnosis)
	case loop.EventRisky:
		answer := map[string]string{"": "observed", "allow": "allowed", "warn": "allowed with a warning",
			"gate": "sent to a gate", "block": "denied"}[d.Answer]
		return fmt.Sprintf("iteration %d: risky tool call (%s), %s: %s", d.Iteration, c.Err.Safe(d.Level), answer,
			c.Err.Safe(d.Target))
	case loop.EventLevel:
		if d.From == "" {
			return "" // the first level
		}
		return fmt.Sprintf("iteration %d: reminders are now %s (%s)", d.Iteration, c.Err.Safe(d.To), c.Err.Safe(d.Reason))
	case loop.EventReassigned:
		return fmt.Sprintf("iteration %d: %s takes over: %s", d.Iteration, c.Err.Safe(d.Agent), c.Err.Safe(d.Why))
	case loop.EventContext:
		what := "work recorded"
		if d.Stop {
			what = "continuing in a new session"
		}
		return fmt.Sprintf("iteration %d: %.0f%% of the agent's context used (%s); %s", d.Iteration, d.Used,
			c.Err.Safe(d.Source), what)
	case loop.EventReverted:
		return fmt.Sprintf("iteration %d: undone: %s", d.Iteration, c.Err.Safe(d.Why))
	case loop.EventWaiting:
		return fmt.Sprintf("iteration %d: waiting until %s (%s)", d.Iteration, local(d.Until), c.Err.Safe(d.Why))
	case loop.EventAgentError, loop.EventWarning:
		return fmt.Sprintf("iteration %d: %s", d.Iteration, c.Err.Safe(d.Message))
	case loop.EventPaused:
		return "paused: " + c.Err.Safe(d.Reason)
	case loop.EventResumed:
		return "resumed"
	case record.EventReopened:
		return "resumed after its end"
	case record.EventConfigured:
		return "changed: " + c.Err.Safe(changed(d.Changes))
	case loop.EventSelected:
		return c.Err.Safe(d.Reason)
	case perdure.EventLoopGateRefused:
		return c.Err.Safe(fmt.Sprintf("gate %d: refused an answer of %s: %s", d.Gate, process(d.PID, d.Program), d.Why))
	case perdure.EventLoopGateAnswered:
		return strings.TrimSpace(fmt.Sprintf("answered: %s %s", d.Answer, c.Err.Safe(d.Reason)))
	default:
		return ""
	}
}

// process returns words for a process; 0 is one that is not known.
func process(pid int, program string) string {
	if pid == 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("process %d (%s)", pid, program)
}

// withheld says how many variables agents and checks do not get, with some of the names.
func withheld(number int64, names []string) string {
	text := fmt.Sprintf("environment: %s not passed to agents and checks", human.Count(number, "variable"))
	if len(names) > 0 {
		text += ", among them " + strings.Join(names, ", ") + "; --env NAME or the setting loop.env passes a variable"
	}
	return text
}

func measured(iteration int, passed bool, failing, regressions int, quality *int) string {
	text := fmt.Sprintf("iteration %d: check ", iteration)
	switch {
	case passed:
		text += "passes"
	case failing > 0:
		text += "fails (" + human.Count(failing, "test") + ")"
	default:
		text += "fails"
	}
	if quality != nil {
		text += fmt.Sprintf(", quality %d%%", *quality)
	}
	if regressions > 0 {
		text += ", " + human.Count(regressions, "regression")
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

// conclude prints the state of a loop and returns its exit status.
func (c *commands) conclude(ctx context.Context, b *env.Backend, id perdure.TreeID, how followConfig) error {
	l, err := b.Loop(ctx, id)
	if err != nil {
		return err
	}
	if why, err := broken(ctx, b, &l); err != nil {
		return err
	} else if why != "" {
		return &env.Exit{Status: env.StatusFailed, Msg: why}
	}
	if c.JSON {
		in, err := c.load(ctx, b, l, loopview.ViewDocument, false)
		if err == nil {
			err = c.show(in, loopview.ViewDocument, false)
		}
		if err != nil {
			return err
		}
	} else {
		c.Printf("%s\n", c.Out.Safe(summary(&l)))
	}
	switch {
	case l.Status == record.Completed, l.Status == record.Aborted && how.aborting:
		return nil
	case l.Status == record.Failed:
		return &env.Exit{Status: env.StatusFailed}
	case l.Status == record.Aborted:
		return &env.Exit{Status: env.StatusIncomplete}
	case l.Status == record.Paused:
		c.Note("`perdure loop resume %s` continues", name(ctx, b, id))
		return &env.Exit{Status: env.StatusIncomplete}
	}
	return &env.Exit{Status: env.StatusGate}
}

// broken returns why the tree of a loop ended without the loop, or "": its store was
// removed, or its state cannot be read.
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

// summary returns the state of a loop as one line.
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
