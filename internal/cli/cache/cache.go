// Package cache implements the command cache, which lists and removes cached answers.
package cache

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/model/cache"
)

type commands struct{ *env.Env }

// Command returns the command with its subcommands.
func Command(e *env.Env) *cobra.Command {
	c := &commands{e}
	return env.Group(&cobra.Command{
		Use:   "cache",
		Short: "List or remove cached answers",
		Long: "List or remove the answers that runs with --cache keep and reuse for identical requests to the same model " +
			"at the same endpoint. An answer from the cache uses no tokens and costs nothing.",
		GroupID: env.GroupManage,
	}, c.newListCommand(), c.newStatsCommand(), c.newEvictCommand())
}

// withCache opens the project's cache for do.
func (c *commands) withCache(cmd *cobra.Command, do func(ctx context.Context, kept *cache.Cache) error) error {
	l, err := c.Load(cmd)
	if err != nil {
		return err
	}
	kept, err := cache.New(cache.Config{Dir: env.CacheDir(l), Secret: c.CacheSecret})
	if err != nil {
		return err
	}
	return do(cmd.Context(), kept)
}

func (c *commands) newListCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the cached answers",
		Long: "List the cached answers, the last used first: key, size, time of the last use, tokens and cost that a use " +
			"saves, and model. With --json the output is one object a line.",
		Example: "perdure cache list --limit 20\n perdure cache list --json | jq -s 'map(.bytes) | add'",
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return env.UsageError("write 0 for all", "--limit is %d", limit)
			}
			return c.withCache(cmd, func(ctx context.Context, kept *cache.Cache) error {
				all, err := kept.List(ctx)
				if err != nil {
					return err
				}
				return c.listCache(all[:min(len(all), cmp.Or(limit, len(all)))])
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "`N` maximum answers to list; 0: all")
	c.JSONFlag(cmd)
	return cmd
}

// shownKey is the printed length of a key.
const shownKey = 12

func (c *commands) listCache(entries []cache.Entry) error {
	if len(entries) == 0 && !c.JSON {
		c.Note("the cache is empty; `perdure run --cache` keeps answers")
	}
	for i := range entries {
		if err := c.Print(&entries[i], func() { c.printEntry(&entries[i]) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *commands) printEntry(e *cache.Entry) {
	if e.Damaged {
		c.Printf("%s  %8s  damaged\n", e.Key[:shownKey], human.Size(e.Bytes))
		return
	}
	saves := fmt.Sprintf("%s in, %s out, %s", human.Compact(e.InputTokens), human.Compact(e.OutputTokens),
		status.Cost(usageOf(e)))
	c.Printf("%s  %8s  %s  %s  %s\n", e.Key[:shownKey], human.Size(e.Bytes),
		env.Pad(human.Ago(time.Now(), e.UsedAt), 14), env.Pad(saves, 32), env.OneLine(e.Model, 40))
}

// usageOf returns the usage of the call whose answer was cached.
func usageOf(e *cache.Entry) perdure.Usage {
	u := perdure.Usage{Calls: 1, InputTokens: e.InputTokens, OutputTokens: e.OutputTokens, UnpricedCalls: 1}
	if e.CostUSD != nil {
		u.CostUSD, u.UnpricedCalls = *e.CostUSD, 0
	}
	return u
}

func (c *commands) newStatsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Print the size of the cache and its savings",
		Long: "Print the number and size of the cached answers, and the tokens and cost of their calls, which using each " +
			"once saves.",
		Args: env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withCache(cmd, func(ctx context.Context, kept *cache.Cache) error {
				s, err := kept.Stats(ctx)
				if err != nil {
					return err
				}
				return c.Print(s, func() { c.printStats(&s) })
			})
		},
	}
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) printStats(s *cache.Stats) {
	c.Printf("%s, %s, in %s\n", human.Count(s.Entries, "answer"), human.Size(s.Bytes), c.Out.Safe(s.Dir))
	if s.Entries == 0 {
		return
	}
	now, cost := time.Now(), "price unknown"
	if s.CostUSD != nil {
		cost = human.Dollars(*s.CostUSD)
	}
	c.Printf("%s tokens in, %s out, %s; newest use %s, oldest use %s\n", human.Compact(s.InputTokens),
		human.Compact(s.OutputTokens), cost, human.Ago(now, *s.NewestUse), human.Ago(now, *s.OldestUse))
	for _, m := range s.Models {
		c.Printf("  %7d  %8s  %s\n", m.Entries, human.Size(m.Bytes), env.OneLine(m.Model, 60))
	}
	if s.Damaged > 0 {
		c.Note("%s damaged or another user's; `perdure cache evict` removes them", human.Count(s.Damaged, "answer"))
	}
}

// evictFlags holds the flags of cache evict.
type evictFlags struct {
	all, dryRun           bool
	model, unused, keepTo string
}

func (c *commands) newEvictCommand() *cobra.Command {
	var f evictFlags
	cmd := &cobra.Command{
		Use:   "evict [KEY]",
		Short: "Remove cached answers",
		Long: "Remove the answer with a key or the beginning of a key, or the answers that all given flags select. Damaged " +
			"answers are always removed.",
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
				return c.evict(ctx, kept, sel)
			})
		},
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "remove every answer")
	cmd.Flags().StringVar(&f.model, "model", "", "`MODEL` remove the answers of this model")
	cmd.Flags().StringVar(&f.unused, "unused", "", "`TIME` remove answers that were not used for this time, such as 30d")
	cmd.Flags().StringVar(&f.keepTo, "keep", "", "`SIZE` keep the last used answers up to this size, such as 100MB, and "+
		"remove the others")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be removed")
	c.JSONFlag(cmd)
	env.CompleteWith(cmd, "model", c.completeCache(func(e *cache.Entry) (string, string) { return e.Model, "" }))
	return cmd
}

// selection returns the selected answers.
func (f *evictFlags) selection(args []string) (cache.Selection, error) {
	unused, unusedErr := env.ParseDuration("unused", f.unused)
	keep, keepErr := env.ParseSize("keep", f.keepTo, 0)
	sel := cache.Selection{All: f.all, Key: strings.Join(args, ""), Model: f.model, Unused: unused, DryRun: f.dryRun}
	if err := cmp.Or(unusedErr, keepErr); err != nil {
		return sel, err
	}
	if f.keepTo != "" {
		sel.KeepBytes = &keep
	}
	if !f.all && sel.Key == "" && sel.Model == "" && sel.Unused == 0 && sel.KeepBytes == nil {
		return sel, env.UsageError("add a key, --all, --model, --unused or --keep", "no answers are selected")
	}
	return sel, nil
}

func (c *commands) evict(ctx context.Context, kept *cache.Cache, sel cache.Selection) error {
	r, err := kept.Evict(ctx, sel)
	if err != nil {
		return err
	}
	if sel.Key != "" && r.Entries == 0 {
		return env.NotFound("`perdure cache list` lists the keys", "no answer with key %q", sel.Key)
	}
	return c.Print(r, func() {
		verb := "removed"
		if r.DryRun {
			verb = "would remove"
		}
		c.Printf("%s %s, %s\n", verb, human.Count(r.Entries, "answer"), human.Size(r.Bytes))
	})
}

// completeCache offers the words that a function returns for the answers.
func (c *commands) completeCache(of func(e *cache.Entry) (word, about string)) cobra.CompletionFunc {
	return env.Completions(1, func(cmd *cobra.Command, add func(word, about string)) error {
		seen := make(map[string]bool)
		return c.withCache(cmd, func(ctx context.Context, kept *cache.Cache) error {
			all, err := kept.List(ctx)
			for i := range all {
				word, about := of(&all[i])
				if word != "" && !seen[word] {
					seen[word] = true
					add(word, about)
				}
			}
			return err
		})
	})
}
