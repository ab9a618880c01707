package handoff

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

func (c *commands) newResumeCommand() *cobra.Command {
	var noClaim bool
	var template string
	var cfg ledger.ResumeConfig
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Claim the work and print the prompt to continue it",
		Long: "Print the prompt to continue the work as Markdown: completed steps, decisions, failed approaches, pending " +
			"steps, and the files to read with their changes since the checkpoint. The work is claimed for the agent: until " +
			"the claim expires, commands of other agents fail. The agent's own commands need the printed token.",
		Example: "perdure handoff resume --agent go-tester\n perdure handoff resume --no-claim --strict",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := c.template(template)
			if err != nil {
				return err
			}
			cfg.Claim, cfg.Template = !noClaim, text
			if cfg.ContractFile != "" {
				cfg.ContractFile = c.Path(cfg.ContractFile)
			}
			if cfg.TTL <= 0 || cfg.TTL > ledger.MaxTTL {
				return env.UsageError("for example --ttl 30m", "--ttl is %s; it must be above 0 and at most %s", cfg.TTL,
					ledger.MaxTTL)
			}
			why := env.Write
			if noClaim {
				why = env.Read
			}
			return c.on(cmd, why, func(ctx context.Context, r *ledger.Recorder) error {
				out, err := r.Resume(ctx, cfg)
				if err != nil {
					return err
				}
				c.notes(out.Notes)
				return c.prompt(r, out)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&noClaim, "no-claim", false, "print the prompt without a claim")
	f.BoolVar(&cfg.TakeOver, "take-over", false, "replace the claim of another agent")
	f.DurationVar(&cfg.TTL, "ttl", ledger.DefaultTTL, "`TIME` time after the last command until the claim expires")
	f.BoolVar(&cfg.Strict, "strict", false, "fail if files changed since the checkpoint, or cannot be compared")
	f.StringVar(&template, "template", "", "`FILE` text/template for the prompt, instead of the built-in one")
	contractFileFlag(cmd, &cfg.ContractFile)
	c.workFlags(cmd)
	return cmd
}

// resumed is the output as JSON.
type resumed struct {
	Task      string    `json:"task"`
	HandoffID ledger.ID `json:"handoff_id,omitempty"`
	handoff.Verdict
	Prompt    string     `json:"prompt"`
	Token     string     `json:"token,omitempty"`
	ExpiresAt *time.Time `json:"claim_expires_at,omitempty"`
	Notes     []string   `json:"notes"`
}

func (c *commands) prompt(r *ledger.Recorder, out *ledger.Resumption) error {
	prompt := strings.TrimRight(out.Prompt, "\n") + "\n" + c.recordingPart(r, out.Claim)
	v := resumed{Task: out.Task.ID, HandoffID: out.Handoff.ID, Verdict: out.Verdict, Prompt: prompt,
		Notes: append([]string{}, out.Notes...)}
	if out.Claim != nil {
		v.Token, v.ExpiresAt, v.HandoffID = out.Claim.Token, out.Claim.ExpiresAt, out.Claim.ID
	}
	return c.Print(v, func() {
		if out.Verdict.Summary == handoff.Stale {
			var moved []string
			for _, f := range out.Verdict.Moved() {
				moved = append(moved, fmt.Sprintf("%s (%s)", human.OneLine(f.Path), f.State))
			}
			c.Note("Checkpoint may be stale — files modified since checkpoint: %s", strings.Join(moved, ", "))
		}
		c.Printf("%s", c.Out.Safe(prompt))
	})
}

// recordingPart returns the part of the prompt about recording.
func (c *commands) recordingPart(r *ledger.Recorder, claim *ledger.Claim) string {
	var b strings.Builder
	flags := ""
	if r.Place != handoff.PRD {
		flags += " --task " + quoted(string(r.Place))
	}
	if c.file != "" {
		flags += " --file " + quoted(c.file)
	}
	if claim == nil && r.Agent != "" {
		flags += " --agent " + quoted(r.Agent)
	}
	b.WriteString("\n## Recording Progress\n\n")
	if claim != nil {
		fmt.Fprintf(&b, "The work is claimed for you until %s; each command below renews that. "+
			"Give `--token %s` with every\n"+
			"`perdure handoff` command, or set %s=%s.\n\n", claim.ExpiresAt.UTC().Format(time.RFC3339), claim.Token,
			tokenVariable, claim.Token)
		flags += " --token " + claim.Token
	}
	fmt.Fprintf(&b, "- After each step: `perdure handoff step \"what was done\" --created PATH --modified PATH%s`\n",
		flags)
	fmt.Fprintf(&b, "- After each decision: `perdure handoff decide \"what\" --because \"why\"%s`\n", flags)
	fmt.Fprintf(&b, "- At the end: `perdure handoff verify%s`, then `perdure handoff done%s`\n", flags, flags)
	b.WriteString("- All of it: `perdure handoff skill`\n")
	return b.String()
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
