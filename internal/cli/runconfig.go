package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm"
)

// runFlags are the flags of run and batch that are not settings.
type runFlags struct {
	contexts      []string
	name          string
	planner       string
	strategy      string
	merge         string
	policy        string
	exhausted     string
	mode          string
	timeout       string
	overlap       string
	maxFileSize   string
	contextWindow int
	temperature   float64
	seed          int64
	quality       qualityFlags
	plan          planFlags
	detach        bool
	json          bool
}

// runSettings are the settings that are flags of run and batch.
func runSettings() []string {
	return []string{"model", "sub_model", "judge", "base_url", "concurrency", "max_depth", "max_children", "max_nodes",
		"max_attempts", "chunk_tokens", "call_timeout", "call_retries", "budget_usd", "budget_tokens", "budget_calls",
		"cache"}
}

func (f *runFlags) register(cmd *cobra.Command) {
	env.SettingFlags(cmd, runSettings()...)
	fl := cmd.Flags()
	fl.StringVar(&f.name, "name", "", "a `name` for the tree, for people")
	fl.StringVar(&f.planner, "planner", "", "how the work is broken down: `none, split or model` (the model makes a "+
		"plan); default: split when the context does not fit the model")
	fl.StringVar(&f.strategy, "strategy", "", "how the parts run: `parallel, sequential, conditional or map-reduce`; "+
		"sequential: each sees the results before it; conditional: see --when; map-reduce: see --fan-in; default: "+
		"parallel, with planner model as the plan says")
	fl.StringVar(&f.merge, "merge", "", "how results become one: `merge, concatenate, summarize, vote or best-of-n`; "+
		"merge leaves out what is there already")
	f.quality.register(cmd)
	f.plan.register(cmd)
	fl.StringVar(&f.policy, "policy", "", "when a part fails: `partial or fail`; default: partial, for sequential fail")
	fl.StringVar(&f.exhausted, "on-exhausted", "", "when no model answers a task: `gate or fail`; gate waits for a "+
		"person (perdure answer); default: gate for a chain of models, else fail")
	fl.StringVar(&f.mode, "mode", "", "how strictly the run can be repeated: `default, seeded, strict or logged`")
	fl.StringVar(&f.timeout, "timeout", "", "the longest `time` the tree may take, for example 30m; default: no limit")
	fl.StringVar(&f.overlap, "overlap", "", "what neighbouring parts of a file share: `tokens or percent` of a part, "+
		"as 200 or 10%, in whole records, paragraphs or lines; 0: nothing; default: a twentieth, at most ten lines "+
		"(nothing for builtin:extract)")
	fl.StringVar(&f.maxFileSize, "max-file-size", "",
		"leave out files of folders that are larger than this `size`, for example 10MB; default: no limit")
	fl.IntVar(&f.contextWindow, "context-window", 0,
		"`tokens` the model reads and writes at once, at least 1000; default: what is known of the model")
	fl.Float64Var(&f.temperature, "temperature", rlm.DefaultTemperature, "`number` from 0 to 2 for the model")
	fl.Int64Var(&f.seed, "seed", 0, "`number` for models that take one; default: none")
	fl.BoolVar(&f.detach, "detach", false, "leave the tree to the daemon and return at once")
	env.JSONFlag(cmd, &f.json)
}

// config makes the configuration of the tree.
func (f *runFlags) config(a *app, cmd *cobra.Command, l *config.Loaded, batch bool) (json.RawMessage, error) {
	timeout, err := parseTimeout(f.timeout)
	var shared, percent int
	if err == nil {
		shared, percent, err = parseOverlap(f.overlap)
	}
	if err == nil {
		_, err = parseSize(f.maxFileSize)
	}
	if err == nil {
		err = checkBaseURL(cmd, l)
	}
	if err != nil {
		return nil, err
	}
	c := rlm.Config{
		Model: a.anchor(l.Model), SubModel: a.anchor(l.SubModel), BaseURL: a.baseURL(l),
		Planner: f.planner, Strategy: perdure.Strategy(f.strategy), Merge: f.merge, Policy: perdure.Policy(f.policy),
		OnExhausted: f.exhausted,
		Batch:       batch, MaxDepth: &l.MaxDepth, MaxChildren: l.MaxChildren, MaxNodes: int64(l.MaxNodes),
		ChunkTokens: l.ChunkTokens, OverlapTokens: shared, OverlapPercent: percent, ContextWindow: f.contextWindow,
		MaxAttempts: l.MaxAttempts, Concurrency: l.Concurrency,
		BudgetUSD: l.BudgetUSD, BudgetTokens: l.BudgetTokens, BudgetCalls: l.BudgetCalls, Timeout: rlm.Duration(timeout),
		CallTimeout: rlm.Duration(l.CallTimeout), CallRetries: &l.CallRetries, Mode: f.mode, Cache: l.Cache,
	}
	if err := f.quality.apply(a, cmd, l, &c); err != nil {
		return nil, err
	}
	if err := f.plan.apply(a, cmd, l, &c); err != nil {
		return nil, err
	}
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
	if _, err := rlm.ParseConfig(raw); err != nil { // before anything is read or uploaded
		return nil, err
	}
	return raw, nil
}

func parseTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return 0, env.UsageError("give it like 90s, 30m or 2h", "--timeout: %s", err)
	}
	if d <= 0 {
		return 0, env.UsageError("leave it out for no limit", "--timeout is %s, which allows nothing at all", text)
	}
	return d, nil
}

// parseOverlap reads "200" or "10%"; shared is -1 for nothing.
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
		return 0, 0, env.UsageError("give tokens, as 200, or a share of a part of at most 50%, as 10%",
			"--overlap: %q is neither", text)
	case n == 0:
		return -1, 0, nil
	case isPercent:
		return 0, n, nil
	}
	return n, 0, nil
}

// parseSize reads "10MB", "512k" or a number of bytes; 0 for "".
func parseSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number := strings.TrimRight(strings.ToLower(text), "bikmgt")
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text[len(number):]), "b"), "i")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	power := strings.Index("kmgt", unit) + 1
	if err != nil || !(n > 0 && n < 1e15) || len(unit) > 1 || power == 0 {
		return 0, env.UsageError("give it like 500k, 10MB or 1GiB", "--max-file-size: %q is not a size", text)
	}
	if unit == "" {
		power = 0
	}
	step := 1000.0
	if strings.ContainsRune(strings.ToLower(text), 'i') {
		step = 1024
	}
	return int64(n * math.Pow(step, float64(power))), nil
}

// anchor makes the paths in a model's name independent of the working
// directory: the tree may be resumed from another one.
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

// shellWord quotes a path for the command line if it has to be.
func shellWord(path string) string {
	if strings.ContainsAny(path, " \t'\"\\|&;<>()`$") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// baseURL is the endpoint of an OpenAI-compatible model: the setting, or the
// variable that other programs use. It is kept with the tree, so that a resumed
// tree asks the same endpoint.
func (a *app) baseURL(l *config.Loaded) string {
	if l.BaseURL == "" && (anyOf(l.Model, "openai:") || anyOf(l.SubModel, "openai:") || anyOf(l.Judge, "openai:")) {
		return a.Getenv("OPENAI_BASE_URL")
	}
	return l.BaseURL
}

// checkBaseURL refuses a --base-url that nobody would ask.
func checkBaseURL(cmd *cobra.Command, l *config.Loaded) error {
	if !cmd.Flags().Changed("base-url") || anyOf(l.Model, "openai:") || anyOf(l.SubModel, "openai:") ||
		anyOf(l.Judge, "openai:") {
		return nil
	}
	if !anyOf(l.Model, "anthropic:") && !anyOf(l.SubModel, "anthropic:") {
		return nil
	}
	return env.UsageError("set ANTHROPIC_BASE_URL for models of Anthropic's protocol, or name the model openai:NAME",
		"--base-url is the endpoint of openai: models, and the model is %q", l.Model)
}

// anyOf tells whether one of the models that a name stands for is of a kind.
func anyOf(name, scheme string) bool {
	for _, one := range model.ChainNames(name) {
		if strings.HasPrefix(one, scheme) {
			return true
		}
	}
	return false
}
