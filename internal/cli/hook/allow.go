package hook

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/process/caller"
	"github.com/perdure/perdure/internal/toolguard/approval"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/internal/toolguard/vendorhook"
)

// gate answers a call that a person has to allow, without a loop: the agent asks if it can.
// Otherwise the call is denied until the person has allowed it, once.
func (c *commands) gate(agentName string, e *vendorhook.Event, j *policy.Judgement) vendorhook.Answer {
	if e.Asks(c.Getenv) {
		return vendorhook.Answer{Verdict: vendorhook.Leave, Text: j.Text()}
	}
	deny := func(text string) vendorhook.Answer {
		return vendorhook.Answer{Verdict: vendorhook.Deny, Text: strings.TrimSpace(j.Text() + "\n" + text)}
	}
	var risks []string
	for _, f := range j.Findings {
		if f.Answer == risk.Gate {
			risks = append(risks, f.What)
		}
	}
	folder, err := approval.Open(c.Getenv)
	if err != nil {
		return deny("It cannot be allowed: " + err.Error())
	}
	call := approval.New(agentName, e.Dir, e.Call, risks)
	if folder.Take(&call) {
		return vendorhook.Answer{Verdict: vendorhook.Pass, Text: "A person allowed this call once."}
	}
	var starter *caller.Ancestor
	if s, ok := caller.Self().Starter(); ok {
		starter = &s
	}
	if err := folder.Request(call, starter); err != nil {
		return deny("It cannot be allowed: " + err.Error())
	}
	return deny(fmt.Sprintf("A person has to allow this call. Ask the user to run `perdure hook allow %s` in a terminal "+
		"of their own, then repeat exactly this call.", call.ID))
}

// allowCommand returns the command with which a person allows a call.
func (c *commands) allowCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "allow [ID]",
		Short: "Allow a denied tool call once",
		Long: "Allow a tool call that a hook has denied because a person has to decide about it. The reply of the hook " +
			"names the ID. The command shows the call and asks; the agent then has 10 minutes to repeat exactly this call, " +
			"once: the same agent, folder, tool and input. Without ID it lists the calls that wait; they wait for 24 " +
			"hours.\n\n" +
			"Only a person can allow a call: the command needs to be in the foreground of a terminal, and is refused to " +
			"programs that a loop, a run or the agent itself has started. --json prints one object with id, agent, dir, " +
			"tool, shown, risks, asked_at and allowed_at, or without ID a list of them.",
		Example: "perdure hook allow\n perdure hook allow 3f9a1c20b7d4",
		Args:    env.Arguments(0, 1, "at most one ID"),
		RunE: func(_ *cobra.Command, args []string) error {
			folder, err := approval.Open(c.Getenv)
			if err != nil {
				return env.UsageError("set HOME", "%s", err)
			}
			if len(args) == 0 {
				return c.list(folder)
			}
			return c.allow(folder, args[0], yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) list(folder approval.Folder) error {
	all, err := folder.List()
	if err != nil {
		return err
	}
	return c.Print(append([]approval.Call{}, all...), func() {
		for i := range all {
			c.show(&all[i])
		}
		if len(all) == 0 {
			c.Note("no call waits for an approval")
		}
	})
}

func (c *commands) show(call *approval.Call) {
	state := ""
	if call.Allowed != nil {
		state = " (allowed, not made yet)"
	}
	c.Printf("%s  %s in %s%s\n", call.ID, c.Out.Safe(call.Agent), c.Out.Safe(call.Dir), state)
	c.Printf("  %s: %s\n", c.Out.Safe(call.Tool), strings.ReplaceAll(c.Out.Safe(call.Shown), "\n", "\n    "))
	for _, r := range call.Risks {
		c.Printf("  risk: %s\n", c.Out.Safe(r))
	}
}

func (c *commands) allow(folder approval.Folder, id string, yes bool) error {
	call, err := folder.Find(id)
	switch {
	case errors.Is(err, approval.ErrUnknown):
		return env.NotFound("`perdure hook allow` lists the calls that wait", "no call %q waits for an approval", id)
	case err != nil:
		return err
	}
	const terminal = "run the command in a terminal of your own, not through the agent"
	self := caller.Self()
	if !self.Terminal() {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "allow call",
			Msg: "only a person at a terminal can allow a call", Hint: terminal}
	}
	if !c.JSON {
		c.show(&call)
	}
	if !yes && !c.Agrees(fmt.Sprintf("allow this call once, within %d minutes?", int(approval.Valid.Minutes()))) {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "allow call", Msg: "not allowed",
			Hint: "answer y, or use --yes"}
	}
	call, err = folder.Allow(call, self)
	if errors.Is(err, approval.ErrOwn) {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "allow call",
			Msg: "a program that the agent has started cannot allow the agent's call", Hint: terminal}
	}
	if err != nil {
		return err
	}
	return c.Print(&call, func() {
		c.Note("allowed until %s: the agent can make this call once; ask it to repeat the call",
			call.Allowed.Add(approval.Valid).Local().Format("15:04"))
	})
}
