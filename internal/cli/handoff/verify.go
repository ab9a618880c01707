package handoff

import (
	"context"
	_ "embed"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

func (c *commands) newVerifyCommand() *cobra.Command {
	var contract, file string
	var cfg ledger.VerifyConfig
	cmd := &cobra.Command{
		Use:   "verify [ACTIVITY STATUS]",
		Short: "Run the verification contract, or record a result",
		Long: "Run the criteria of the verification contract that have commands, and record the results as run by the " +
			"engine. With an activity and a status (pending, passed, failed, skipped), record that result as reported by " +
			"the agent. A missing contract is an error. The exit status is 1 if a criterion failed, and 3 if one has no " +
			"command and has to be checked by hand, or if all are deferred.",
		Example: "perdure handoff verify\n perdure handoff verify unit-test passed\n" +
			" perdure handoff verify --contract US-003.verificationContract",
		Args: env.Arguments(0, 2, "no arguments, or an activity and its status"),
		RunE: func(cmd *cobra.Command, args []string) error {
			op := ledger.Op{Kind: ledger.OpVerify, Contract: contract}
			if file != "" {
				op.ContractFile = c.Path(file)
			}
			if len(args) > 0 {
				op.Text, op.Status = args[0], handoff.Status(strings.Join(args[1:], ""))
				return c.record(cmd, op)
			}
			return c.on(cmd, env.Write, func(ctx context.Context, r *ledger.Recorder) error {
				return c.verify(ctx, r, cfg, op)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&contract, "contract", "", "`NAME` new contract of the work, such as US-003.verificationContract")
	contractFileFlag(cmd, &file)
	f.BoolVar(&cfg.Deferred, "deferred", false, "also check the deferred criteria")
	f.DurationVar(&cfg.Timeout, "timeout", 10*time.Minute, "`TIME` timeout of a command")
	c.workFlags(cmd)
	return cmd
}

// verified is the output as JSON.
type verified struct {
	Contract string              `json:"contract"`
	File     string              `json:"file"`
	Passed   bool                `json:"passed"`
	Results  []handoff.Result    `json:"results"`
	Open     []handoff.Criterion `json:"open"`
}

// verify runs the contract after setting it, and its file, to those of op, if op names them.
func (c *commands) verify(ctx context.Context, r *ledger.Recorder, cfg ledger.VerifyConfig, op ledger.Op) error {
	if _, err := os.Stat(op.ContractFile); err != nil && op.ContractFile != "" {
		return env.NotFound("", "read contract: %s", err)
	}
	if op.Contract != "" || op.ContractFile != "" {
		if _, err := r.Apply(ctx, op); err != nil {
			return err
		}
	}
	cfg.Output = c.Err
	cfg.Began = func(criterion handoff.Criterion) { c.Note("checking %s", human.OneLine(criterion.Activity)) }
	v, err := r.Verify(ctx, cfg)
	if err != nil {
		return err
	}
	out := verified{v.Contract.Ref, v.Contract.File, v.Passed(), append([]handoff.Result{}, v.Results...),
		append([]handoff.Criterion{}, v.Open...)}
	err = c.Print(out, func() {
		for _, result := range v.Results {
			c.Printf("%-8s %s\n", result.Status, human.OneLine(result.Activity))
		}
		for _, criterion := range v.Open {
			c.Printf("%-8s %s\n", "open", human.OneLine(criterion.Activity+suffix(criterion.Description)))
		}
	})
	failed := func(result handoff.Result) bool { return result.Status != handoff.StatusPassed }
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(v.Results, failed):
		return &env.Exit{Status: env.StatusFailed}
	case !v.Passed():
		return &env.Exit{Status: env.StatusIncomplete}
	}
	return nil
}

// Skill is the document for agents about recording and resuming work.
//
//go:embed skill.md
var Skill string

func (c *commands) newSkillCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "skill",
		Short: "Print the instructions for agents",
		Long: "Print the instructions for agents as Markdown: what to record and when, how to resume, and what stale files " +
			"mean.",
		Example: "perdure handoff skill > handing-over.md",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			c.Printf("%s", Skill)
			return nil
		},
	}
}
