package acp

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/record"
)

// replay sends the prompts of a session with what happened. The session has the last prompt then.
func (s *server) replay(ctx context.Context, ss *session) error {
	p, err := s.openStore(ctx, ss)
	if err != nil {
		return err
	}
	t := &turn{s: s, ss: ss}
	defer t.close(p)
	all, err := entries(ctx, p, ss.id)
	if err != nil {
		return err
	}
	for i := range all {
		e := &all[i]
		s.update(ss.id, "user_message_chunk", object{"content": textBlock(e.Text)})
		if err := t.again(ctx, p, e); err != nil {
			return err
		}
		ss.last, ss.mode = e, e.Mode
	}
	ss.prompts = len(all)
	return nil
}

// again shows what happened after a prompt.
func (t *turn) again(ctx context.Context, p *Project, e *promptEntry) error {
	if e.Tree == "" {
		t.say("Interrupted before it was started; `/resume` starts it.")
		return nil
	}
	if e.Mode == ModeLoop {
		if err := t.pastEvents(ctx, p, e.Tree); err != nil {
			return err
		}
	}
	open, err := isOpen(ctx, p, e)
	switch {
	case perdure.CodeOf(err) == perdure.CodeNotFound:
		t.say("%s was removed.", e.Tree)
		return nil
	case err != nil:
		return err
	case open:
		return t.interrupted(ctx, p, e)
	}
	return t.conclude(ctx, p, e)
}

// pastEvents shows the newest events of a loop.
func (t *turn) pastEvents(ctx context.Context, p *Project, id perdure.TreeID) error {
	v, _, err := newLoopView(ctx, t, p, id)
	if perdure.CodeOf(err) == perdure.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return v.showPast(ctx, p)
}

// interrupted shows the state of a tree that has not ended.
func (t *turn) interrupted(ctx context.Context, p *Project, e *promptEntry) error {
	if e.Mode == ModeLoop {
		l, err := p.Loop(ctx, e.Tree)
		if err == nil {
			t.say("%s: %s; `/resume` continues it.", e.Tree, t.s.cfg.View.Summary(&l))
		}
		return err
	}
	s, err := p.Status(ctx, e.Tree)
	if err == nil {
		t.say("%s: %d of %d tasks done; `/resume` continues it.", e.Tree, s.Completed, s.Total)
	}
	return err
}

// conclude shows how a tree ended, or that a loop waits.
func (t *turn) conclude(ctx context.Context, p *Project, e *promptEntry) error {
	if e.Mode == ModeRun {
		r, err := p.Result(ctx, e.Tree)
		if err != nil {
			return err
		}
		text, problem := t.s.cfg.View.Answer(&r)
		t.s.say(t.ss.id, text)
		t.s.say(t.ss.id, problem)
		return nil
	}
	l, err := p.Loop(ctx, e.Tree)
	if err != nil {
		return err
	}
	text := t.s.cfg.View.Summary(&l)
	if !l.Status.Ended() {
		if l.Status == record.Paused {
			text += "; `/resume` continues it"
		}
		if why, err := t.broken(ctx, p, &l); err != nil {
			return err
		} else if why != "" {
			text = why
		}
	}
	t.say("%s: %s", e.Tree, text)
	return nil
}

// broken returns why the tree of a loop ended without the loop, "" if it did not.
func (t *turn) broken(ctx context.Context, p *Project, l *record.Loop) (string, error) {
	tree, err := p.Tree(ctx, l.Tree)
	if err != nil || !tree.State.Terminal() {
		return "", err
	}
	root, err := p.Task(ctx, tree.Root)
	if err != nil || root.Error == nil {
		return "its tree is " + string(tree.State), err
	}
	return root.Error.Message, nil
}
