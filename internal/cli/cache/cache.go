// Package cache implements the command cache: it lists and removes cached answers.
package cache

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/model/cache"
)

type commands struct{ *env.Env }

// Command makes the command with its subcommands.
func Command(e *env.Env) *cobra.Command {
	c := &commands{e}
	return env.Group(&cobra.Command{
		Use:   "cache",
		Short: "List or remove answers kept for the same request",
		Long: "List or remove the answers that runs with --cache keep and give again: to the same request of the same " +
			"model at the same endpoint. An answer from the cache is a call that takes no tokens and costs nothing.",
		GroupID: env.GroupManage,
	}, c.newListCommand(), c.newStatsCommand(), c.newEvictCommand())
}

// withCache opens the answers of the project.
func (c *commands) withCache(cmd *cobra.Command, do func(ctx context.Context, kept *cache.Cache) error) error {
	l, err := c.Load(cmd)
	if err != nil {
		return err
	}
	kept, err := cache.New(cache.Config{Dir: env.CacheDir(l)})
	if err != nil {
		return err
	}
	return do(cmd.Context(), kept)
}

func (c *commands) newListCommand() *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the answers, those used last first",
		Long: "List the answers, those used last first: key, size, when last used, tokens and cost that a use saves, " +
			"model. With --json one object a line.",
		Example: "perdure cache list --limit 20\n perdure cache list --json | jq -s 'map(.bytes) | add'",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return env.UsageError("0 lists all", "--limit is %d", limit)
			}
			return c.withCache(cmd, func(ctx context.Context, kept *cache.Cache) error {
				all, err := kept.List(ctx)
				if err != nil {
					return err
				}
				return c.listCache(all[:min(len(all), cmp.Or(limit, len(all)))], asJSON)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "the most answers to list; 0: all")
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

// shownKey is how much of a key is shown: enough to name an entry by.
const shownKey = 12

func (c *commands) listCache(entries []cache.Entry, asJSON bool) error {
	if len(entries) == 0 && !asJSON {
		c.Note("no answers are kept; `perdure run --cache` keeps them")
	}
	now := time.Now()
	for i := range entries {
		e := &entries[i]
		if asJSON {
			if err := c.PrintJSON(e); err != nil {
				return err
			}
			continue
		}
		if e.Damaged {
			c.Printf("%s  %s  damaged\n", e.Key[:shownKey], env.PadLeft(human.Size(e.Bytes), 8))
			continue
		}
		saves := fmt.Sprintf("%s in, %s out, %s", human.Compact(e.InputTokens), human.Compact(e.OutputTokens),
			status.Cost(usageOf(e)))
		c.Printf("%s  %s  %s  %s  %s\n", e.Key[:shownKey], env.PadLeft(human.Size(e.Bytes), 8),
			env.Pad(human.Ago(now, e.UsedAt), 14), env.Pad(saves, 32), env.OneLine(e.Model, 40))
	}
	return nil
}

// usageOf is what an answer took when it was given.
func usageOf(e *cache.Entry) perdure.Usage {
	u := perdure.Usage{Calls: 1, InputTokens: e.InputTokens, OutputTokens: e.OutputTokens, UnpricedCalls: 1}
	if e.CostUSD != nil {
		u.CostUSD, u.UnpricedCalls = *e.CostUSD, 0
	}
	return u
}

func (c *commands) newStatsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count the answers and what they took when they were given",
		Long: "Count the answers, their size, and the tokens and dollars they took when they were given: what is saved " +
			"when each is used once.",
		Args: env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withCache(cmd, func(ctx context.Context, kept *cache.Cache) error {
				s, err := kept.Stats(ctx)
				if err != nil || asJSON {
					return errorOr(err, func() error { return c.PrintJSON(s) })
				}
				c.Printf("%s, %s, in %s\n", human.Count(int64(s.Entries), "answer"), human.Size(s.Bytes), c.Out.Safe(s.Dir))
				if s.Entries == 0 {
					return nil
				}
				now := time.Now()
				c.Printf("took %s tokens in, %s out, %s; last used %s, longest unused since %s\n", human.Compact(s.InputTokens),
					human.Compact(s.OutputTokens), human.Dollars(s.CostUSD), human.Ago(now, *s.NewestUse),
					human.Ago(now, *s.OldestUse))
				for _, m := range s.Models {
					c.Printf("  %s  %s  %s\n", env.PadLeft(fmt.Sprint(m.Entries), 7), env.PadLeft(human.Size(m.Bytes), 8),
						env.OneLine(m.Model, 60))
				}
				if s.Damaged > 0 {
					c.Note("%s damaged; `perdure cache evict` removes them", human.Count(int64(s.Damaged), "answer"))
				}
				return nil
			})
		},
	}
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

// errorOr does something unless there is an error already.
func errorOr(err error, do func() error) error {
	if err != nil {
		return err
	}
	return do()
}

// evictFlags say which answers go.
type evictFlags struct {
	all, dryRun, json     bool
	model, unused, keepTo string
}

func (c *commands) newEvictCommand() *cobra.Command {
	var f evictFlags
	cmd := &cobra.Command{
		Use:   "evict [KEY]",
		Short: "Remove answers",
		Long: "Remove the answer with a key (its beginning will do), or those to which all given flags apply. Damaged " +
			"answers go with any of them.",
		Example: "perdure cache evict --unused 30d\n perdure cache evict --keep 100MB --dry-run\n" +
			" perdure cache evict 3f9ac01b22d4",
		Args:              env.Arguments(0, 1, "at most one key"),
		ValidArgsFunction: c.completeCache(func(e *cache.Entry) (string, string) { return e.Key[:shownKey], e.Model }),
		RunE: func(cmd *cobra.Command, args []string) error {
			sel, err := f.selection(args)
			if err != nil {
				return err
			}
			return c.withCache(cmd, func(ctx context.Context, kept *cache.Cache) error {
				return c.evict(ctx, kept, sel, f.json)
			})
		},
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "remove every answer")
	cmd.Flags().StringVar(&f.model, "model", "", "remove the answers of this `model`")
	cmd.Flags().StringVar(&f.unused, "unused", "", "remove answers not used for this `time`, for example 30d")
	cmd.Flags().StringVar(&f.keepTo, "keep", "", "keep the answers used last up to this `size`, for example 100MB, and "+
		"remove the others")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "remove nothing, tell what would go")
	env.JSONFlag(cmd, &f.json)
	env.CompleteWith(cmd, "model", c.completeCache(func(e *cache.Entry) (string, string) { return e.Model, "" }))
	return cmd
}

// selection checks what was asked for.
func (f *evictFlags) selection(args []string) (cache.Selection, error) {
	sel := cache.Selection{All: f.all, Model: f.model, DryRun: f.dryRun}
	if len(args) > 0 {
		sel.Key = args[0]
	}
	if f.unused != "" {
		d, err := config.ParseDuration(f.unused)
		if err == nil && d <= 0 {
			err = fmt.Errorf("%s is not longer than 0", f.unused)
		}
		if err != nil {
			return sel, env.UsageError("give it like 12h or 30d", "--unused: %s", err)
		}
		sel.Unused = d
	}
	if f.keepTo != "" {
		n, err := humanize.ParseBytes(f.keepTo)
		if err != nil || n > 1<<60 {
			return sel, env.UsageError("give it like 100MB or 1GB", "--keep: %q is not a size", f.keepTo)
		}
		keep := int64(n)
		sel.KeepBytes = &keep
	}
	if !f.all && sel.Key == "" && sel.Model == "" && sel.Unused == 0 && sel.KeepBytes == nil {
		return sel, env.UsageError("name a key, or use --all, --model, --unused or --keep",
			"nothing says which answers are to go")
	}
	return sel, nil
}

func (c *commands) evict(ctx context.Context, kept *cache.Cache, sel cache.Selection, asJSON bool) error {
	r, err := kept.Evict(ctx, sel)
	if err != nil {
		return err
	}
	if sel.Key != "" && r.Entries == 0 {
		return &perdure.Error{Code: perdure.CodeNotFound, Op: "evict answer",
			Msg:  fmt.Sprintf("there is no answer %q", sel.Key),
			Hint: "`perdure cache list` shows what there is"}
	}
	if asJSON {
		return c.PrintJSON(r)
	}
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	c.Printf("%s %s, %s\n", verb, human.Count(int64(r.Entries), "answer"), human.Size(r.Bytes))
	return nil
}

// completeCache offers what a function tells of each answer.
func (c *commands) completeCache(of func(e *cache.Entry) (word, about string)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []cobra.Completion
		seen := make(map[string]bool)
		err := c.withCache(cmd, func(ctx context.Context, kept *cache.Cache) error {
			all, err := kept.List(ctx)
			for i := range all {
				word, about := of(&all[i])
				if word != "" && !seen[word] {
					seen[word] = true
					found = append(found, cobra.CompletionWithDesc(word, about))
				}
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
