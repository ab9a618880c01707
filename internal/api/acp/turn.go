package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/jsonrpc"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/loop/record"
)

// turn is the execution of one prompt.
type turn struct {
	s    *server
	ss   *session
	mode Mode
}

func (t *turn) say(format string, args ...any) { t.s.say(t.ss.id, fmt.Sprintf(format, args...)) }

// execute executes a prompt and returns why the turn ended.
func (t *turn) execute(ctx context.Context, in *input) (reason string, err error) {
	switch in.command {
	case commandUntil, commandAgent:
		return stopEnd, t.set(in)
	case commandStatus:
		return stopEnd, t.status(ctx)
	case commandResume:
		if t.ss.last == nil {
			return "", invalidf("the session has no run and no loop to resume")
		}
		return t.ended(ctx, t.proceed(ctx, t.ss.last))
	case commandRun, commandLoop:
		t.mode = Mode(in.command)
		return t.ended(ctx, t.start(ctx, in))
	}
	open, err := t.unfinished(ctx)
	switch {
	case err != nil:
		return t.ended(ctx, err)
	case open:
		t.say("%s has not ended; it continues, and this prompt is not passed to it. `/run` and `/loop` start a new one.",
			nameOf(t.ss.last))
		return t.ended(ctx, t.proceed(ctx, t.ss.last))
	}
	return t.ended(ctx, t.start(ctx, in))
}

// nameOf returns the words for the tree of an entry.
func nameOf(e *promptEntry) string {
	if e.Tree == "" {
		return "The last " + string(e.Mode)
	}
	return string(e.Tree)
}

// ended returns how a turn ended. A turn that was cancelled has no error.
func (t *turn) ended(ctx context.Context, err error) (string, error) {
	if ctx.Err() != nil {
		return stopCancelled, nil
	}
	if err != nil {
		return "", err
	}
	return stopEnd, nil
}

// set sets the check or the agent of the next loops.
func (t *turn) set(in *input) error {
	switch {
	case in.Text == "":
		return invalidf("/%s needs a value", in.command)
	case in.command == commandUntil:
		t.ss.until = in.Text
		t.say("The next loops of this session run until `%s` succeeds.", in.Text)
	default:
		t.ss.agent = in.Text
		t.say("The next loops of this session use the agent `%s`.", in.Text)
	}
	return nil
}

// status shows the state of the last tree.
func (t *turn) status(ctx context.Context) error {
	e := t.ss.last
	if e == nil || e.Tree == "" {
		t.say("No run and no loop yet.")
		return nil
	}
	p, err := t.s.openStore(ctx, t.ss)
	if err != nil {
		return err
	}
	defer t.close(p)
	if e.Mode == ModeLoop {
		l, err := p.Loop(ctx, e.Tree)
		if err != nil {
			return err
		}
		t.say("%s: %s", e.Tree, t.s.cfg.View.Summary(&l))
		return nil
	}
	status, err := p.Status(ctx, e.Tree)
	if err != nil {
		return err
	}
	t.say("%s: %s, %d of %d tasks done", e.Tree, status.State, status.Completed, status.Total)
	return nil
}

// unfinished reports whether the last tree of the session has not ended.
func (t *turn) unfinished(ctx context.Context) (bool, error) {
	e := t.ss.last
	switch {
	case e == nil:
		return false, nil
	case e.Tree == "":
		return true, nil
	}
	p, err := t.s.openStore(ctx, t.ss)
	if err != nil {
		return false, err
	}
	defer t.close(p)
	return isOpen(ctx, p, e)
}

// isOpen reports whether the tree of an entry has not ended.
func isOpen(ctx context.Context, p *Project, e *promptEntry) (bool, error) {
	tree, err := p.Tree(ctx, e.Tree)
	return err == nil && !tree.State.Terminal(), err
}

func (t *turn) close(p *Project) {
	if err := p.Close(); err != nil {
		t.s.cfg.Logger.Warn("close store", "error", err)
	}
}

// start creates the tree of a prompt and follows it.
func (t *turn) start(ctx context.Context, in *input) error {
	if strings.TrimSpace(in.Text) == "" {
		return invalidf("prompt is empty")
	}
	p, err := t.open(ctx, &OpenRequest{Dir: t.ss.dir, Mode: t.mode, Own: true, Until: t.ss.until, Agent: t.ss.agent})
	if err != nil {
		return err
	}
	defer t.close(p)
	req, err := p.Work.Prepare(ctx, &in.Prompt)
	if err != nil {
		return err
	}
	e, err := t.ss.newEntry(ctx, p, t.mode, in)
	if err != nil {
		return err
	}
	if err := e.save(ctx, p, t.ss.id); err != nil {
		return err
	}
	failpoint.Hit("acp.prompt_stored")
	if err := t.create(ctx, p, e, req); err != nil {
		e.remove(context.WithoutCancel(ctx), p, t.ss.id)
		return err
	}
	t.ss.last = e
	t.ss.prompts++
	t.s.mu.Lock()
	t.s.created[e.Tree] = true
	t.s.mu.Unlock()
	return t.follow(ctx, p, e, 0)
}

// create creates the tree of an entry, or finds the one that was created before, and stores its ID.
func (t *turn) create(ctx context.Context, p *Project, e *promptEntry, req client.TreeRequest) error {
	req.IdempotencyKey = e.key(t.ss.id)
	tree, err := p.Work.Create(ctx, req)
	if err != nil {
		return err
	}
	failpoint.Hit("acp.tree_created")
	e.Tree = tree.ID
	return e.save(context.WithoutCancel(ctx), p, t.ss.id)
}

// proceed continues the tree of an entry and follows it.
func (t *turn) proceed(ctx context.Context, e *promptEntry) error {
	p, err := t.open(ctx, &OpenRequest{Dir: t.ss.dir, Mode: e.Mode, Stored: true, Own: t.s.own(e.Tree)})
	if err != nil {
		return err
	}
	defer t.close(p)
	if e.Tree == "" { // the process was killed before it had stored the ID
		req, err := p.Work.Prepare(ctx, &e.Prompt)
		if err != nil {
			return err
		}
		if err := t.create(ctx, p, e, req); err != nil {
			return err
		}
	}
	page, err := p.NewestEvents(ctx, 0, e.Tree, 1)
	if err != nil {
		return err
	}
	elsewhere, err := p.Work.Resume(ctx, e.Tree)
	if err != nil {
		return err
	}
	if elsewhere {
		p.Tokens = nil
		t.say("Another process executes %s.", e.Tree)
	}
	return t.follow(ctx, p, e, page.Next)
}

// follow follows a tree until it ends, pauses, or the turn is cancelled. Events up to the number
// after are known.
func (t *turn) follow(ctx context.Context, p *Project, e *promptEntry, after int64) error {
	err := p.Work.Follow(ctx, func(ctx context.Context) error {
		if e.Mode == ModeLoop {
			return t.followLoop(ctx, p, e.Tree, after)
		}
		return t.followRun(ctx, p, e.Tree)
	})
	if ctx.Err() != nil {
		return t.halt(context.WithoutCancel(ctx), p, e, context.Cause(ctx))
	}
	if err != nil {
		return err
	}
	return t.conclude(ctx, p, e)
}

// halt stops a tree after the turn was cancelled: a loop pauses, and a run is cancelled. If the agent
// stops, runs stay as they are, so that they can be continued.
func (t *turn) halt(ctx context.Context, p *Project, e *promptEntry, why error) error {
	err := t.halted(ctx, p, e, why)
	if err != nil {
		t.say("%s could not be stopped: %s", e.Tree, message(err))
	}
	return err
}

func (t *turn) halted(ctx context.Context, p *Project, e *promptEntry, why error) error {
	if e.Mode == ModeRun {
		if !errors.Is(why, errCancelled) {
			return nil
		}
		n, err := p.CancelTree(ctx, e.Tree, "cancelled in the editor")
		if err == nil && n > 0 {
			t.say("%s is cancelled.", e.Tree)
		}
		return err
	}
	l, err := p.Loop(ctx, e.Tree)
	resumed := l.Control == record.Resume // also by a process that follows the loop
	stops := l.Status == record.Paused || l.Control != record.NoControl
	if err != nil || l.Status.Ended() || stops && !resumed {
		return err
	}
	control := record.Pause // the work of this process has ended, and an unfinished turn is undone
	if p.Tokens == nil {
		control = record.PauseNow
	}
	_, err = p.AskLoop(ctx, e.Tree, control)
	if err == nil {
		t.say("%s is paused; `/resume` continues it.", e.Tree)
	}
	return err
}

// open opens the store of the session. If something would act that the user does not trust, it asks.
func (t *turn) open(ctx context.Context, req *OpenRequest) (*Project, error) {
	req.Trusted = t.ss.trusted
	p, err := t.s.cfg.Host.Open(ctx, req)
	u, untrusted := errors.AsType[*UntrustedError](err)
	if !untrusted {
		return p, err
	}
	refused := &perdure.Error{Code: perdure.CodeInvalid, Msg: u.Error(), Hint: u.Hint}
	if u.Hint != "" {
		return nil, refused
	}
	refused.Hint = "read the list with `perdure trust --show`, then `perdure trust`"
	t.ss.asked++
	answer, err := t.ask(ctx, &question{ID: fmt.Sprintf("trust-%d", t.ss.asked), Title: "Trust " + u.Dir + "?",
		Text: "The folder can come with a repository. If you trust it:\n\n" + list(u.Lines), Options: trustOptions()})
	if err != nil {
		return nil, err
	}
	req.Trusted = u.Lines
	switch answer {
	case trustAlways:
		err = t.s.cfg.Host.Trust(ctx, req)
	case trustOnce:
		t.ss.trusted = slices.Clone(u.Lines)
	default:
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	p, err = t.s.cfg.Host.Open(ctx, req)
	if u, untrusted := errors.AsType[*UntrustedError](err); untrusted { // the settings changed meanwhile
		return nil, &perdure.Error{Code: perdure.CodeConflict, Msg: u.Error(),
			Hint: "its settings changed; send the prompt again"}
	}
	return p, err
}

// Answers to the question whether a folder is trusted.
const (
	trustOnce   = "trust_session"
	trustAlways = "trust"
	trustNo     = "no"
)

func trustOptions() []option {
	return []option{{trustOnce, "Trust in this session", "allow_once"},
		{trustAlways, "Trust the folder, as `perdure trust` does", "allow_always"}, {trustNo, "Do not trust", "reject_once"}}
}

// list returns lines as a list in Markdown.
func list(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("- " + strings.ReplaceAll(line, "\n", " ") + "\n")
	}
	return b.String()
}

// errNoAnswer is the error of a question that the editor could not ask.
var errNoAnswer = &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the editor did not answer a permission request"}
