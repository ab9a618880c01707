package handoff

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/cli/env"
)

func (c *commands) newStartCommand() *cobra.Command {
	var again bool
	op := ledger.Op{Kind: ledger.OpStart}
	cmd := &cobra.Command{
		Use:   "start [TITLE]",
		Short: "Start recording the work on a task",
		Long: "Start recording the work on a task. A minimal builder-state.json, or its activePrd, is created if there is " +
			"none. If unfinished work on the task is recorded, that work is not changed: `perdure handoff resume` continues it.",
		Example: "perdure handoff start \"Dark mode\" --pending \"Add the toggle\" --pending \"Write tests\" " +
			"--contract US-003.verificationContract",
		Args: env.Arguments(0, -1, "the title of the task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			op.Text = strings.Join(args, " ")
			if op.ContractFile != "" {
				op.ContractFile = c.Path(op.ContractFile)
			}
			return c.start(cmd, op, again)
		},
	}
	f := cmd.Flags()
	f.StringVar(&op.Description, "description", "", "`TEXT` description of the task for the resume prompt")
	f.StringArrayVar(&op.Steps, "pending", nil, "`STEP` pending step; repeatable")
	f.StringVar((*string)(&op.Phase), "phase", "",
		"`PHASE` planning (the default), implementation, verification or documentation")
	f.StringVar(&op.Contract, "contract", "", "`NAME` verification contract, such as US-003.verificationContract")
	contractFileFlag(cmd, &op.ContractFile)
	f.BoolVar(&again, "again", false, "end recorded work first")
	c.workFlags(cmd)
	return cmd
}

func (c *commands) start(cmd *cobra.Command, op ledger.Op, again bool) error {
	if err := op.Check(); err != nil {
		return err
	}
	if err := checkAgent(c.agentName()); err != nil {
		return err // before a file is made
	}
	loc, err := c.locate()
	if errors.Is(err, handoff.ErrNotFound) {
		loc, err = c.create(cmd.Context(), op.Text)
	} else if err == nil {
		err = c.fill(cmd.Context(), loc)
	}
	if err != nil {
		return translated(err)
	}
	return c.at(cmd, loc, env.Write, func(ctx context.Context, r *ledger.Recorder) error {
		if again {
			view, err := r.Look(ctx)
			if err == nil && view.Open() {
				_, err = r.Apply(ctx, ledger.Op{Kind: ledger.OpDone, Text: "started again"})
			}
			if err != nil {
				return err
			}
		}
		u, err := r.Apply(ctx, op)
		if err != nil {
			return err
		}
		return c.printUpdate(r, u)
	})
}

// create creates a minimal file at the root of the repository, or at --file.
func (c *commands) create(ctx context.Context, title string) (handoff.Location, error) {
	place, err := c.place()
	if err != nil {
		return handoff.Location{}, err
	}
	file := filepath.Join(handoff.RootOf(filepath.Join(c.Cwd, handoff.FileName)), handoff.FileName)
	if c.file != "" {
		file = c.Path(c.file)
	}
	s := handoff.Skeleton{Place: place, Now: time.Now().UTC(), Description: title}
	if err := handoff.Create(ctx, file, s); err != nil {
		return handoff.Location{}, err
	}
	c.Note("created %s", c.Err.Safe(file))
	return handoff.Location{File: file, Root: handoff.RootOf(file)}, nil
}

// fill makes an activePrd in a file whose activePrd is null, if the work is recorded there. It
// stays when the start is refused: resume needs it as the place of the unfinished work.
func (c *commands) fill(ctx context.Context, loc handoff.Location) error {
	place, err := c.place()
	if err != nil || place != handoff.PRD {
		return err
	}
	filled, err := handoff.FillPRD(ctx, loc.File, handoff.Skeleton{})
	if filled {
		c.Note("made an activePrd in %s", c.Err.Safe(loc.File))
	}
	return err
}

func (c *commands) newReassignCommand() *cobra.Command {
	op := ledger.Op{Kind: ledger.OpReassign}
	var template, contractFile string
	cmd := &cobra.Command{
		Use:   "reassign --to AGENT",
		Short: "Hand the work to another agent and print its prompt",
		Long: "Hand the work to another agent and print its resume prompt. The current agent is added to the previous " +
			"agents, and its claim is released.",
		Example: "perdure handoff reassign --to go-tester --because \"jest is not available\"",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := op.Check(); err != nil {
				return err
			}
			return c.on(cmd, env.Write, func(ctx context.Context, r *ledger.Recorder) error {
				cfg := ledger.ResumeConfig{Template: template}
				if contractFile != "" {
					cfg.ContractFile = c.Path(contractFile)
				}
				return c.reassign(ctx, r, op, cfg)
			})
		},
	}
	cmd.Flags().StringVar(&op.To, "to", "", "`AGENT` agent that continues")
	cmd.Flags().StringVar(&op.Text, "because", "", "`TEXT` reason")
	cmd.Flags().StringVar(&template, "template", "", "`FILE` text/template for the prompt, instead of the built-in one")
	contractFileFlag(cmd, &contractFile)
	partialFlag(cmd, &op)
	c.workFlags(cmd)
	return cmd
}

// contractFileFlag adds the flag for a contract that is in none of the usual files.
func contractFileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "contract-file", "", "`FILE` JSON file with the verification contract")
}

// reassign hands the work over. The template of cfg is the name of its file.
func (c *commands) reassign(ctx context.Context, r *ledger.Recorder, op ledger.Op, cfg ledger.ResumeConfig) error {
	var err error
	if cfg.Template, err = c.template(cfg.Template); err != nil {
		return err
	}
	if _, err := r.Resume(ctx, cfg); err != nil {
		return err // before anything is recorded
	}
	u, err := r.Apply(ctx, op)
	if err != nil {
		return err
	}
	if err := c.release(ctx, r, u, []ledger.Op{op}); err != nil {
		return err
	}
	r.Agent, r.Token = op.To, ""
	out, err := r.Resume(ctx, cfg)
	if err != nil {
		return err
	}
	c.notes(u.Notes)
	return c.prompt(r, out)
}

func (c *commands) template(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	raw, err := os.ReadFile(c.Path(name))
	if err != nil {
		return "", env.NotFound("", "read template: %s", err)
	}
	return string(raw), nil
}
