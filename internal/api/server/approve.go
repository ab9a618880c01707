package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/caller"
	"github.com/perdure/perdure/loop/config"
)

// approved returns an error if the caller cannot answer a gate, and logs that. A gate that
// does not exist is an error too: it can open, with an approver, before the answer is recorded.
func (s *server) approved(ctx context.Context, id perdure.TreeID, number int, token string) error {
	refusal := s.byUser(ctx)
	g, err := s.store.Gate(ctx, id, number)
	if err != nil {
		return cmp.Or(refusal, err)
	}
	if g.Run || g.AnsweredAt != nil {
		return refusal
	}
	if refusal == nil {
		refusal = s.judge(ctx, &g, token)
	}
	if refusal == nil {
		return nil
	}
	c, _ := callerOf(ctx)
	why := refusal.Error()
	if e, ok := errors.AsType[*perdure.Error](refusal); ok {
		why = e.Msg
	}
	if err := s.store.LogGateRefusal(ctx, id, perdure.GateRefusal{Gate: number, PID: c.PID, Program: c.Program(),
		Why: why}); err != nil {
		s.log.Warn("log a refused answer", "tree_id", string(id), "error", err)
	}
	return refusal
}

// judge returns an error if the open gate of a loop does not take an answer of the caller.
func (s *server) judge(ctx context.Context, g *perdure.Gate, token string) error {
	c, fromSocket := callerOf(ctx)
	if token != "" && g.TokenHash != "" {
		if g.HasToken(token) {
			return nil
		}
		return refuseAnswer(g, "the token is not the one of gate %d", g.Number)
	}
	switch g.Approver {
	case perdure.ApproverTerminal:
		if !c.Terminal() {
			return refuseAnswer(g, "the caller does not run in the foreground of a terminal")
		}
	case perdure.ApproverToken:
		return refuseAnswer(g, "the answer has no token")
	case perdure.ApproverUser:
		return s.judgeUser(g, c, fromSocket)
	case perdure.ApproverAny, "": // "": from before there were approvers
	}
	return nil
}

// weakens returns an error if the caller cannot change what a loop reports: make its
// configuration weaker, or mark a finding as a false alarm. There is no gate and no token
// for these, so they need a terminal where gates take a token.
func (s *server) weakens(ctx context.Context, id perdure.TreeID) error {
	if err := s.byUser(ctx); err != nil {
		return err
	}
	l, err := s.records.Loop(ctx, id)
	if err != nil {
		return err
	}
	tree, err := s.store.Tree(ctx, id)
	if err != nil {
		return err
	}
	cfg, err := config.Of(&tree, &l)
	if err != nil {
		return err
	}
	c, fromSocket := callerOf(ctx)
	switch {
	case cfg.Approver == perdure.ApproverUser:
		return s.judgeUser(&perdure.Gate{Approver: cfg.Approver}, c, fromSocket)
	case cfg.Approver != perdure.ApproverAny && !c.Terminal():
		return &perdure.Error{Code: perdure.CodeConflict, Op: "check caller",
			Msg:  "the caller does not run in the foreground of a terminal, and would weaken the checks of a loop",
			Hint: "use a terminal; loops with loop.approver any accept it without one"}
	}
	return nil
}

// judgeUser requires another user than the one that runs the loop: the user of this process
// if the caller uses its socket, else the one to whom the store belongs.
func (s *server) judgeUser(g *perdure.Gate, c caller.Caller, fromSocket bool) error {
	owner := os.Geteuid()
	if !fromSocket {
		if s.store.Dir() == "" {
			return refuseAnswer(g, "the store is a PostgreSQL database, which does not report its users")
		}
		owner = caller.Owner(s.store.Dir())
	}
	if c.UID < 0 || owner < 0 || c.UID == owner {
		return refuseAnswer(g, "the caller runs as the user that runs the loop")
	}
	return nil
}

// refuseAnswer returns the error of a caller that cannot answer a gate, with what the gate
// takes.
func refuseAnswer(g *perdure.Gate, format string, args ...any) error {
	const again = "; `perdure loop resume` makes another token"
	hint := ""
	switch g.Approver {
	case perdure.ApproverTerminal:
		hint = "answer in a terminal, or with --token: the terminal that runs the loop and the notices show the token" +
			again + "; the setting loop.approver changes what later gates take"
	case perdure.ApproverToken:
		hint = "use --token: the terminal that runs the loop and the notices show the token" + again
	case perdure.ApproverUser:
		hint = "answer as another user, for example `sudo PERDURE_DIR=$PWD/.perdure perdure loop answer`; if the store is " +
			"a PostgreSQL database, over the socket of `perdure serve`"
	case perdure.ApproverAny:
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "answer gate", Msg: fmt.Sprintf(format, args...), Hint: hint}
}
