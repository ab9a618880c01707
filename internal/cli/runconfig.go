package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

// runFlags holds the flags of run and batch that are not settings.
type runFlags struct {
	contexts      []string
	encoding      string
	noIgnore      bool
	name          string
	planner       string
	strategy      string
	merge         string
	execInput     string
	policy        string
	exhausted     string
	mode          string
	timeout       string
	overlap       string
	maxFileSize   string
	contextWindow int
	searchReplies int
	repl          replFlags
	tools         []string
	params        paramFlags
	maxOutput     int
	temperature   float64
	seed          int64
	quality       qualityFlags
	plan          planFlags
	detach        bool
	dryRun        bool
	yes           bool
}

// runSettings returns the settings with flags of run and batch.
func runSettings() []string {
	return []string{"model", "sub_model", "judge", "base_url", "concurrency", "max_depth", "max_children", "max_nodes",
		"max_attempts", "chunk_tokens",
		"search_above", "pre", "repl_python", "repl_unsandboxed",
		"call_timeout", "call_retries", "patience", "max_wait", "budget_usd", "budget_tokens", "budget_calls",
		"confirm_above", "cache"}
}

// register adds the flags of run and batch.
func (f *runFlags) register(a *app, cmd *cobra.Command) {
	f.registerTree(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.detach, "detach", false, "let the daemon run the tree and return at once")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print calls, tokens, cost and time of the run, and start nothing")
	a.JSONFlag(cmd)
	env.UsesActing(cmd)
	groupRunFlags(cmd)
}

// registerTree adds the flags on the tree.
func (f *runFlags) registerTree(cmd *cobra.Command) {
	env.SettingFlags(cmd, runSettings()...)
	fl := cmd.Flags()
	fl.StringVar(&f.name, "name", "", "`NAME` name of the tree")
	fl.StringVar(&f.planner, "planner", "", "`PLANNER` how to plan the work: none, split, search (the model searches the "+
		"context), model, or repl (the model writes code that reads the context); default: none, split if the context "+
		"does not fit, search if split takes too many calls")
	fl.StringVar(&f.strategy, "strategy", "", "`NAME` how to run the parts: parallel (the default), sequential (each "+
		"sees the results before it), conditional (see --when) or map-reduce (see --fan-in)")
	fl.StringVar(&f.merge, "merge", "", "`NAME` how to merge answers: summarize (the model writes one; the default of "+
		"models that generate text), concatenate (the default of exec: models and of batch), merge (without repeated longer "+
		"text; the default of builtin:extract, which ranks), vote (the default of --samples), best-of-n, or exec:COMMAND "+
		"(a program reads the answers, one after another)")
	fl.StringVar(&f.execInput, "exec-input", "", "`NAME` what exec: models read: prompt (prompt and text), or text (the "+
		"text alone, as it is; the default with --merge exec:COMMAND; PERDURE_PROMPT has the prompt)")
	f.quality.register(cmd)
	f.plan.register(cmd)
	fl.StringVar(&f.policy, "policy", "", "`NAME` what to do if a part fails: partial, or fail (the default of "+
		"sequential)")
	fl.StringVar(&f.exhausted, "on-exhausted", "", "`ACTION` what to do if no model answers a task: fail, or gate (wait "+
		"for perdure answer; the default with fallbacks)")
	fl.StringVar(&f.mode, "mode", "", "`MODE` how repeatable the run is: default, seeded, strict or logged")
	fl.StringVar(&f.timeout, "timeout", "", "`TIME` maximum time of a tree, such as 30m")
	fl.StringVar(&f.overlap, "overlap", "", "`SIZE` overlap of neighboring parts of a file, in tokens or percent of a "+
		"part; default: 5% but at most ten lines, or 0 for tables, JSON lines, logs, exec: and builtin:extract")
	fl.StringVar(&f.maxFileSize, "max-file-size", "", "`SIZE` maximum size of files read from folders, such as 10MB")
	fl.StringVar(&f.encoding, "encoding", "", "`NAME` encoding of files that are not UTF-8, such as shift-jis; default: "+
		"recognized")
	fl.BoolVar(&f.noIgnore, "no-ignore", false, "also read files of folders that .gitignore names, and build folders")
	fl.IntVar(&f.searchReplies, "search-replies", 0, "`N` maximum replies of the model in planner search; default: 12")
	f.repl.register(cmd)
	f.params.register(fl)
	fl.StringArrayVar(&f.tools, "tool", nil, "`NAME=exec:COMMAND` program that the model of planner repl or search can "+
		"have run, with a JSON object on standard input; settings (tools) can describe it; repeatable")
	fl.IntVar(&f.contextWindow, "context-window", 0, "`N` tokens that fit the model, if it is not a known one")
	fl.IntVar(&f.maxOutput, "max-output-tokens", 0, "`N` maximum tokens of an answer, sent with each request and "+
		"reserved within budgets; default: 4096, or a quarter of a small window")
	fl.Float64Var(&f.temperature, "temperature", rlm.DefaultTemperature, "`NUMBER` temperature from 0 to 2")
	fl.Int64Var(&f.seed, "seed", 0, "`NUMBER` seed for models that accept one")
	fl.BoolVar(&f.yes, "yes", false, "do not ask because of --confirm-above")
}

// groupRunFlags puts the flags into groups. Those that the command does not have are left out.
func groupRunFlags(cmd *cobra.Command) {
	env.GroupFlags(cmd,
		env.FlagGroup{Title: "Context and model", Flags: "context model sub-model base-url agent tool pre encoding " +
			"max-file-size no-ignore cache"},
		env.FlagGroup{Title: "Limits", Flags: "dry-run budget-usd budget-tokens budget-calls confirm-above yes timeout " +
			"concurrency max-output-tokens"},
		env.FlagGroup{Title: "Answer", Flags: "json cite schema name detach trust"},
		env.FlagGroup{Title: "Splitting and merging", Flags: "planner strategy merge policy samples"},
		env.FlagGroup{Title: "Splitting in detail", All: true,
			Flags: "search-above search-replies " +
				"max-depth max-children max-nodes chunk-tokens overlap exec-input context-window when fan-in var"},
		env.FlagGroup{Title: "REPL", All: true,
			Flags: "repl-engine repl-profile repl-turns repl-python repl-unsandboxed"},
		env.FlagGroup{Title: "Quality gate", All: true,
			Flags: "min-score judge criteria gate-rounds gate-at gate-fallback escalate-model"},
		env.FlagGroup{Title: "Model requests", All: true,
			Flags: "temperature seed param header mode max-attempts call-timeout call-retries patience max-wait on-exhausted"})
}

// config returns the configuration of the tree.
func (f *runFlags) config(a *app, cmd *cobra.Command, l *config.Loaded, batch bool) (json.RawMessage, error) {
	raw, err := f.encode(a, cmd, l, batch)
	if err == nil {
		_, err = rlm.ParseConfig(raw) // before the context is read
	}
	return raw, err
}

// encode returns the flags and settings as a configuration that is not checked yet.
func (f *runFlags) encode(a *app, cmd *cobra.Command, l *config.Loaded, batch bool) (json.RawMessage, error) {
	timeout, timeErr := env.ParseDuration("timeout", f.timeout)
	shared, percent, overlapErr := parseOverlap(f.overlap)
	_, sizeErr := env.ParseSize("max-file-size", f.maxFileSize, 1)
	if err := cmp.Or(timeErr, overlapErr, sizeErr, checkBaseURL(cmd, l)); err != nil {
		return nil, err
	}
	c := rlm.Config{
		Model: a.anchor(l.Model), SubModel: a.anchor(l.SubModel), BaseURL: a.baseURL(l),
		Planner: f.planner, Strategy: perdure.Strategy(f.strategy), Merge: a.anchorOne(f.merge),
		ExecInput: f.execInput, Policy: perdure.Policy(f.policy),
		OnExhausted: f.exhausted, Batch: batch,
		MaxDepth: &l.MaxDepth, MaxChildren: l.MaxChildren, MaxNodes: int64(l.MaxNodes), ChunkTokens: l.ChunkTokens,
		OverlapTokens: shared, OverlapPercent: percent, ContextWindow: f.contextWindow,
		AnswerTokens: f.maxOutput, SearchAbove: l.SearchAbove, SearchReplies: f.searchReplies,
		MaxAttempts: l.MaxAttempts, Concurrency: l.Concurrency,
		BudgetUSD: l.BudgetUSD, BudgetTokens: l.BudgetTokens, BudgetCalls: l.BudgetCalls, Timeout: rlm.Duration(timeout),
		CallTimeout: rlm.Duration(l.CallTimeout), CallRetries: &l.CallRetries,
		Patience: new(rlm.Duration(l.Patience)), MaxWait: new(rlm.Duration(l.MaxWait)), Mode: f.mode, Cache: l.Cache,
	}
	if c.SearchAbove == 0 {
		c.SearchAbove = rlm.NeverSearch
	}
	err := cmp.Or(f.repl.apply(cmd, &c), f.addTools(a, l, &c), f.quality.apply(a, cmd, l, &c),
		f.plan.apply(a, cmd, l, &c), f.params.apply(a, l, &c))
	if err != nil {
		return nil, err
	}
	a.nameModels(cmd, l, &c)
	if cmd.Flags().Changed("temperature") {
		c.Temperature = &f.temperature
	}
	if cmd.Flags().Changed("seed") {
		c.Seed = &f.seed
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return raw, nil
}

// addTools adds the tools of the flags and, for planners that have tools, those of the settings. A
// flag replaces the program of the settings, and keeps its description.
func (f *runFlags) addTools(a *app, l *config.Loaded, c *rlm.Config) error {
	c.Tools = make(map[string]rlm.Tool)
	for name, t := range l.Tools {
		c.Tools[name] = rlm.Tool{Command: t.Command, Description: t.Description, Parameters: json.RawMessage(t.Parameters)}
	}
	given := make(map[string]bool)
	for _, text := range f.tools {
		name, command, ok := strings.Cut(text, "=")
		if !ok || given[name] {
			return env.UsageError("write for example --tool weather=exec:./weather.sh, each name once",
				"--tool: %q is not NAME=exec:COMMAND", text)
		}
		given[name] = true
		t := c.Tools[name]
		t.Command = a.anchor(command)
		c.Tools[name] = t
	}
	if c.Planner != rlm.PlannerRepl && c.Planner != rlm.PlannerSearch {
		maps.DeleteFunc(c.Tools, func(name string, _ rlm.Tool) bool { return !given[name] })
	}
	return nil
}

// nameModels adds the sub-models that have names.
func (a *app) nameModels(cmd *cobra.Command, l *config.Loaded, c *rlm.Config) {
	for name, model := range env.Named(cmd, "sub-model") {
		if c.SubModels == nil {
			c.SubModels = make(map[string]string)
		}
		c.SubModels[name] = a.anchor(model)
		if anyModel("openai:", model) {
			c.BaseURL = cmp.Or(c.BaseURL, l.BaseURL, a.Getenv("OPENAI_BASE_URL"))
		}
	}
}

// parseOverlap parses "200" or "10%"; shared is -1 for "0".
func parseOverlap(text string) (shared, percent int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	number, isPercent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	limit := rlm.MaxContextWindow
	if isPercent {
		limit = 50
	}
	switch {
	case err != nil || n < 0 || n > limit:
		return 0, 0, env.UsageError("write tokens, such as 200, or at most 50%, such as 10%",
			"--overlap: %q is not a size", text)
	case n == 0:
		return -1, 0, nil
	case isPercent:
		return 0, n, nil
	}
	return n, 0, nil
}

// anchor makes the paths in a model's name absolute, because the tree can be resumed in
// another working directory.
func (a *app) anchor(name string) string {
	names := model.ChainNames(name)
	for i := range names {
		names[i] = a.anchorOne(names[i])
	}
	return strings.Join(names, ",")
}

func (a *app) anchorOne(name string) string {
	scheme, rest, _ := strings.Cut(name, ":")
	switch scheme {
	case "mock":
		if path := filepath.Join(a.Cwd, rest); rest != "" && !filepath.IsAbs(rest) && isFile(path) {
			return scheme + ":" + path
		}
	case "exec":
		program, arguments, _ := strings.Cut(rest, " ")
		if strings.HasPrefix(program, "./") || strings.HasPrefix(program, "../") {
			return strings.TrimRight(scheme+":"+shellWord(filepath.Join(a.Cwd, program))+" "+arguments, " ")
		}
	}
	return name
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// shellWord quotes a path for the shell if necessary.
func shellWord(path string) string {
	if strings.ContainsAny(path, " \t'\"\\|&;<>()`$") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// baseURL returns the endpoint of openai: models: the setting, or OPENAI_BASE_URL. It is
// kept with the tree, so that a resumed tree uses the same endpoint.
func (a *app) baseURL(l *config.Loaded) string {
	if l.BaseURL == "" && anyModel("openai:", l.Model, l.SubModel, l.Judge) {
		return a.Getenv("OPENAI_BASE_URL")
	}
	return l.BaseURL
}

// checkBaseURL returns an error for a --base-url that no model uses.
func checkBaseURL(cmd *cobra.Command, l *config.Loaded) error {
	named := slices.Collect(maps.Values(env.Named(cmd, "sub-model")))
	if !cmd.Flags().Changed("base-url") || anyModel("openai:", append(named, l.Model, l.SubModel, l.Judge)...) ||
		!anyModel("anthropic:", l.Model, l.SubModel) {
		return nil
	}
	return env.UsageError("set ANTHROPIC_BASE_URL for anthropic: models, or use a model openai:NAME",
		"--base-url is the endpoint of openai: models; the model is %q", l.Model)
}

// anyModel reports whether one of the models or of their fallbacks has a scheme.
func anyModel(scheme string, models ...string) bool {
	return slices.ContainsFunc(models, func(name string) bool {
		return slices.ContainsFunc(model.ChainNames(name), func(one string) bool { return strings.HasPrefix(one, scheme) })
	})
}
