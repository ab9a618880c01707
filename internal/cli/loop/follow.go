package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/gate"
	"github.com/perdure/perdure/internal/loop/state"
	loopview "github.com/perdure/perdure/internal/view/loop"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// followConfig configures how a loop is followed.
type followConfig struct {
	// noWait returns at a gate instead of waiting for the answer.
	noWait bool
	// asks returns at a gate unless the user can be asked on the terminal.
	asks bool
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
			c.stopped(context.WithoutCancel(ctx), b, id)
			c.Note("paused; `perdure loop resume %s` continues", which)
		}
		return &env.Exit{Status: env.StatusInterrupted}
	}
	if err != nil {
		return err
	}
	c.showToken(ctx, b, id, &how)
	return c.conclude(ctx, b, id, how)
}

// stopped records that the user paused the loop, which would otherwise count as crashed.
func (c *commands) stopped(ctx context.Context, b *env.Backend, id perdure.TreeID) {
	l, err := b.Loop(ctx, id)
	if err == nil && !l.Status.Ended() && l.Status != record.Paused && l.Control == record.NoControl {
		_, err = b.AskLoop(ctx, id, record.Pause)
	}
	if err != nil {
		c.Note("not recorded that the loop is paused: %s", err)
	}
}

// follow prints events until the loop ends, pauses or waits at a gate.
func (c *commands) follow(ctx context.Context, b *env.Backend, id perdure.TreeID, how *followConfig) error {
	ctx, stop := context.WithCancel(ctx)
	answers := gate.Ask(ctx, c.Env, b)
	progress := &ticker{w: c.Err, terminal: c.Err.Terminal, width: c.Err.Width}
	var ticking sync.WaitGroup
	ticking.Go(func() { progress.run(ctx.Done()) })
	defer ticking.Wait() // after stop
	defer stop()
	leaving := false  // leave after the handlers of the gate were called
	baseline := false // its check is running
	for e, err := range b.Events(ctx, 0, id) {
		if err != nil {
			return err
		}
		if e.Kind == loop.EventActivity {
			if text, since, ok := c.activity(&e, how.since); ok {
				progress.start(text, since)
			}
			continue
		}
		if e.Kind != perdure.EventLogRows { // it follows each change of the loop
			progress.stop()
		}
		if text := c.line(&e); text != "" && !e.Time.Before(how.since) {
			line := c.Err.Dim(e.Time.Local().Format(time.TimeOnly)) + "  " + text
			fmt.Fprintln(c.Err, c.Err.WrapBelow(line, len(time.TimeOnly)+len("  ")))
		}
		switch e.Kind {
		case loop.EventStarted:
			baseline = true
		case loop.EventIteration, loop.EventPaused, perdure.EventLoopGateOpened:
			baseline = false
		}
		if baseline {
			progress.start("baseline: the check is running", e.Time)
		}
		if leaving {
			if done, err := gateReported(ctx, b, id); done || err != nil {
				return err
			}
		}
		switch e.Kind {
		case loop.EventCheck:
			progress.start("the check is running", e.Time)
		case loop.EventCleanCopy:
			progress.start(inCleanCopy, time.Now())
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
			if leaving && e.Time.Before(how.since) {
				return awaitTakenOver(ctx, b, id)
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

// awaitTakenOver waits until this process has taken over a loop that waited at a gate before: it replaces
// the token of the gate then, and waits again.
func awaitTakenOver(ctx context.Context, b *env.Backend, id perdure.TreeID) error {
	if b.Local == nil {
		return nil
	}
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return err
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		root, err := b.Task(ctx, tree.Root)
		if err != nil || root.State.Terminal() || root.State == perdure.Queued && root.ReadyAt.After(time.Now()) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
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
	text, err := gate.Text(c.Err, &g, c.target(ctx, b, id), how.shown)
	if err != nil {
		return false, err
	}
	how.bell()
	fmt.Fprint(c.Err, text)
	cfg, err := configuration(ctx, b, id)
	if err != nil {
		return false, err
	}
	leaving = how.noWait || how.asks && ask == nil || cfg.EndsAtGates()
	switch {
	case leaving:
	case ask != nil:
		ask <- g
	case b.Local != nil:
		c.Note("waiting for an answer; Ctrl-C stops, and `perdure loop resume %s` continues", name(ctx, b, id))
	}
	return leaving, nil
}

// configuration returns the current configuration of a loop.
func configuration(ctx context.Context, b *env.Backend, id perdure.TreeID) (config.Config, error) {
	l, err := b.Loop(ctx, id)
	if err != nil {
		return config.Config{}, err
	}
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return config.Config{}, err
	}
	return config.Of(&tree, &l)
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
	in, err := c.load(ctx, b, l, loopview.ViewDocument, false)
	if err != nil {
		return err
	}
	if !c.JSON {
		c.Printf("%s\n", c.Out.Wrap(c.Out.Safe(summary(&l))))
	} else if err := c.show(in, loopview.ViewDocument, false); err != nil {
		return err
	}
	for _, line := range loopview.New(in).Ending() {
		c.Note("%s", c.Err.Safe(line))
	}
	if text := c.heldOutNote(ctx, b, id); text != "" && !c.JSON {
		c.Note("%s", c.Err.Safe(text))
	}
	c.noteBranch(&l)
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
	c.Note("continue with `perdure loop answer ANSWER --loop %[1]s`, then `perdure loop resume %[1]s`", name(ctx, b, id))
	return &env.Exit{Status: env.StatusGate}
}

// noteBranch names the branch with the commits of a loop that has ended, and its worktree.
func (c *commands) noteBranch(l *record.Loop) {
	s, err := state.Read(l.State)
	if err != nil || s.Branch == nil || s.Branch.Head == "" || !l.Status.Ended() {
		return
	}
	c.Note("the commits are on %[1]s; `git log -p HEAD..%[1]s` shows them", s.Branch.Branch)
	if s.Worktree != "" {
		c.Note("`git merge %s` takes them over; `git worktree remove --force %q` removes the worktree", s.Branch.Branch,
			s.Worktree)
	}
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
	if standing, err := state.Read(l.State); err == nil && standing.Gate > 0 && !l.Status.Ended() {
		return fmt.Sprintf("waiting at gate %d", standing.Gate)
	}
	text := string(l.Status)
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	if s.Selected != "" {
		text += ". " + s.Selected
	}
	return text
}
