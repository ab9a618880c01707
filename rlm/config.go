package rlm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/rlm/internal/jsonreply"
	"github.com/perdure/perdure/rlm/internal/retrieve"
	"github.com/perdure/perdure/rlm/internal/score"
)

// Defaults and limits of [Config].
const (
	DefaultModel        = extract.Name
	DefaultMaxDepth     = 3
	MaxDepthCeiling     = 5
	DefaultMaxChildren  = 10
	MaxChildrenCeiling  = 100_000
	DefaultMaxNodes     = 10_000
	DefaultSoftNodes    = 100
	DefaultSamples      = 3
	MaxSamples          = 1000
	DefaultTemperature  = 0.7
	MinContextWindow    = 1000
	MaxContextWindow    = 100_000_000
	MaxAttemptsCeiling  = 100
	MaxConcurrency      = 4096
	maxCallRetries      = 100
	maxBudgetUSD        = 1e9
	microsPerDollar     = 1e6
	maxSystemBytes      = 1 << 20
	maxModelNameBytes   = 1024
	defaultAnswerTokens = 4096
	// DefaultSearchAbove is the number of calls above which planner search is the
	// default; NeverSearch as Config.SearchAbove means that it never is.
	DefaultSearchAbove = 60
	NeverSearch        = -1
	// MaxSearchReplies is how often the model of a search is asked at most.
	MaxSearchReplies = retrieve.MaxReplies
)

// Planners: how a task is broken down.
const (
	// PlannerNone answers directly.
	PlannerNone = "none"
	// PlannerSplit splits the context into parts.
	PlannerSplit = "split"
	// PlannerSearch has the model search the context and read what it finds.
	PlannerSearch = "search"
	// PlannerModel has the model make a plan.
	PlannerModel = "model"
	// PlannerRepl has the model write code that reads the context.
	PlannerRepl = "repl"
)

// Strategies: how the children of a task run, in addition to perdure.Parallel and
// perdure.Sequential.
const (
	// StrategyConditional runs them one after another, each only if a condition
	// on the results before it holds.
	StrategyConditional perdure.Strategy = "conditional"
	// StrategyMapReduce runs them all at once and merges their results in a
	// tree of tasks.
	StrategyMapReduce perdure.Strategy = "map-reduce"
)

// Merges: how the results of the children become one.
const (
	// MergeConcatenate puts them one after another.
	MergeConcatenate = "concatenate"
	// MergeUnion leaves out longer text that is exactly there already, but no numbers,
	// short values and JSON, and keeps the order; ranked citations are ranked together.
	MergeUnion = "merge"
	// MergeSummarize has a model write one result from them.
	MergeSummarize = "summarize"
	// MergeVote takes the most frequent one.
	MergeVote = "vote"
	// MergeBest takes the one that a judge gives the highest score.
	MergeBest = "best-of-n"
	// MergeProgram begins the names of merges by a program: "exec:" and a command, which reads the
	// results from its standard input, each with a newline at its end, and writes the result.
	MergeProgram = programScheme
)

// Inputs: what models that are programs read.
const (
	// InputPrompt is the prompt, and the text with a frame round each file.
	InputPrompt = "prompt"
	// InputText is the text alone, as it is. The prompt is in the variable PERDURE_PROMPT.
	InputText = "text"
)

// Modes: how strictly a run can be repeated.
const (
	ModeDefault = "default"
	// ModeSeeded sends the seed with every request.
	ModeSeeded = "seeded"
	// ModeStrict is seeded, and a replayed call whose request differs from the
	// recorded one fails the task.
	ModeStrict = "strict"
	// ModeLogged keeps every request with its reply in the journal.
	ModeLogged = "logged"
)

// Duration is a time.Duration that is text in JSON: "90s", "1h30m".
type Duration time.Duration

// MarshalText writes the form of time.Duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads the form of time.Duration.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration like 30s or 5m", b)
	}
	*d = Duration(v)
	return nil
}

// Config is how a tree is run. It is JSON in the tree's configuration; a field
// that is missing has its default.
type Config struct {
	// Model answers for the root, SubModel for the tasks below it.
	// Default: DefaultModel; SubModel: Model.
	Model    string `json:"model,omitempty"`
	SubModel string `json:"sub_model,omitempty"`
	// SubModels are models that the code of planner repl asks by these names, in addition to
	// SubModel.
	SubModels map[string]string `json:"sub_models,omitempty"`
	// Tools are programs that the models of planners repl and search can have run, by the names
	// that they call them.
	Tools map[string]Tool `json:"tools,omitempty"`
	// BaseURL is the endpoint of an OpenAI-compatible model; empty: the
	// provider's own.
	BaseURL string `json:"base_url,omitempty"`
	// Params are further fields of each request to a model, for example {"top_p": 0.9}.
	Params Fields `json:"params,omitempty"`
	// Headers are further headers of each request to a model over HTTP. Their values name
	// environment variables, for example {"X-Team": "$TEAM"}: the values are not stored.
	Headers Fields `json:"headers,omitempty"`
	// Cache gives answers again that were given before, to the same request
	// by the same model: they take no tokens and cost nothing.
	Cache bool `json:"cache,omitempty"`
	// System is sent before the prompt; may be empty.
	System string `json:"system,omitempty"`

	// Planner is none, split, search, model or repl. Default: none when the context fits
	// the model, else split; with a model that writes, search when split would
	// take more than SearchAbove calls or more than the budget pays.
	Planner string `json:"planner,omitempty"`
	// PlannerReason, set by Launch, is why planner search was chosen, or would have been.
	PlannerReason string `json:"planner_reason,omitempty"`
	// SearchAbove is the number of calls above which planner search is the default.
	// Default: DefaultSearchAbove; NeverSearch: it never is. SearchReplies is how
	// often the model of a search is asked at most. Default: MaxSearchReplies.
	SearchAbove   int `json:"search_above,omitempty"`
	SearchReplies int `json:"search_replies,omitempty"`
	// ReplEngine is python or starlark: what runs the code of planner repl. Default: python.
	ReplEngine string `json:"repl_engine,omitempty"`
	// ReplProfile is native, reference or paper, or a version of one: what the model of planner
	// repl reads in its requests. It is kept with its version. Default: native.
	ReplProfile string `json:"repl_profile,omitempty"`
	// ReplTurns is the most replies in which code is run. Default: DefaultReplTurns.
	ReplTurns int `json:"repl_turns,omitempty"`
	// Fork, if set, is the tree that a run with planner repl goes on from: its turns up to one of
	// them, with their sub-calls, are taken over and cost nothing.
	Fork *Fork `json:"fork,omitempty"`
	// Ask is the tree to which the prompt is a further question; see [LaunchRequest].
	Ask perdure.TreeID `json:"ask,omitempty"`
	// Variables are names of variables that planner model receives, with their
	// values when it is asked: the task's, of those above it, then of Session,
	// then the global ones. Session may be empty.
	Variables []string `json:"variables,omitempty"`
	Session   string   `json:"session,omitempty"`
	// Strategy is parallel, sequential, conditional or map-reduce. Default:
	// parallel; with planner model the plan says.
	Strategy perdure.Strategy `json:"strategy,omitempty"`
	// Merge is merge, concatenate, summarize, vote, best-of-n, or exec: and a command.
	// Default: summarize where models generate text; concatenate where Model or
	// SubModel is a program, and for a batch; merge with builtin:extract; vote with
	// Samples.
	Merge string `json:"merge,omitempty"`
	// FileMerge, set by default in a batch, merges the parts of a file that is split.
	// Default: what Merge is without a batch.
	FileMerge string `json:"file_merge,omitempty"`
	// ExecInput is prompt or text: what models that are programs read. Default: text
	// where SubModel is a program and so is the merge, else prompt.
	ExecInput string `json:"exec_input,omitempty"`
	// PromptVersion, set by Launch, is the version of the form of requests. A tree keeps
	// its version, so that its requests are found in the journal.
	PromptVersion int `json:"prompt_version,omitempty"`
	// When is the condition of strategy conditional, one line over the results
	// before a part: see the decision record on conditions. With planner model
	// the plan has the conditions.
	When string `json:"when,omitempty"`
	// FanIn is how many results one task of a map-reduce merges at most.
	// Default: MaxChildren.
	FanIn int `json:"fan_in,omitempty"`
	// Samples is how often the same prompt is asked, by as many children of the
	// root, where nothing else breaks the work down. Default: once; for vote
	// and best-of-n DefaultSamples.
	Samples int `json:"samples,omitempty"`
	// Judge scores answers for best-of-n and for the quality gate: a model's
	// name; "exec:" and a program that gets the answer on its standard input
	// and writes a number; or "rule:" and an expression over the answer, such as
	// "rule:len(text) < 500 and 'total' in lower(text)". Default: Model.
	Judge string `json:"judge,omitempty"`
	// Criteria is what a judge model goes by, in words. Default: correct, then
	// complete, then clear.
	Criteria string `json:"criteria,omitempty"`
	// MinScore makes a quality gate: an answer that a model writes and the
	// judge scores lower is written again, with the judge's critique. Judge
	// models give 0 to 100. Nil: no gate.
	MinScore *float64 `json:"min_score,omitempty"`
	// GateRounds is how many answers are tried at most, the first included.
	// Default: DefaultGateRounds.
	GateRounds int `json:"gate_rounds,omitempty"`
	// GateFallback is what happens when none was good enough: return_best,
	// fail or escalate. Default: return_best.
	GateFallback string `json:"gate_fallback,omitempty"`
	// GateAt is all or root: whose answers are judged. Default: all.
	GateAt string `json:"gate_at,omitempty"`
	// EscalateModel is asked last with escalate. Default: Model, for answers of
	// the SubModel.
	EscalateModel string `json:"escalate_model,omitempty"`
	// OnExhausted is what becomes of a task when no model answers: gate or fail.
	// Default: gate where a chain of models was asked, else fail.
	OnExhausted string `json:"on_exhausted,omitempty"`
	// Policy is partial or fail. Default: partial; for sequential fail.
	Policy perdure.Policy `json:"policy,omitempty"`
	// Batch makes one child for each file of the context, with {file} in the
	// prompt replaced by the file's name.
	Batch bool `json:"batch,omitempty"`

	// MaxDepth is the deepest level of a decomposition, 0 to MaxDepthCeiling;
	// the root is 0, and levels that only keep MaxChildren do not count.
	// Default: DefaultMaxDepth.
	MaxDepth *int `json:"max_depth,omitempty"`
	// MaxChildren is the most children of a task, the root of a batch
	// excepted. Default: DefaultMaxChildren.
	MaxChildren int `json:"max_children,omitempty"`
	// MaxNodes is the most tasks of the tree. Default: DefaultMaxNodes.
	MaxNodes int64 `json:"max_nodes,omitempty"`
	// ChunkTokens is the largest part of the context given to one task.
	// Default: from the model's window.
	ChunkTokens int `json:"chunk_tokens,omitempty"`
	// OverlapTokens bounds what two neighbouring parts of one file share: whole
	// records, paragraphs or lines, which are marked in the later one. OverlapPercent,
	// 1 to 50, says the same as a share of a part. Default: a twentieth of a part and at
	// most ten lines; nothing of tables, lines of JSON and logs, for builtin:extract and
	// for programs; OverlapTokens -1: nothing.
	OverlapTokens  int `json:"overlap_tokens,omitempty"`
	OverlapPercent int `json:"overlap_percent,omitempty"`
	// ContextWindow is how many tokens a model reads and writes at once.
	// Default: what the model says, else DefaultWindow.
	ContextWindow int `json:"context_window,omitempty"`
	// AnswerTokens is the longest answer, which is kept free in the window, reserved
	// within budgets and sent as a limit. Default: 4096, or a quarter of a small window.
	AnswerTokens int `json:"answer_tokens,omitempty"`
	// MaxAttempts is how often a task is tried.
	// Default: perdure.DefaultMaxAttempts.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// Concurrency is how many tasks the executing process runs at once; it is
	// for the process that starts the worker. Default: theirs.
	Concurrency int `json:"concurrency,omitempty"`

	// BudgetUSD, BudgetTokens, BudgetCalls and Timeout (from the creation of
	// the tree) bound the whole tree. Default: no bound.
	BudgetUSD    float64  `json:"budget_usd,omitempty"`
	BudgetTokens int64    `json:"budget_tokens,omitempty"`
	BudgetCalls  int64    `json:"budget_calls,omitempty"`
	Timeout      Duration `json:"timeout,omitempty"`
	// CallTimeout bounds one request to a model, CallRetries is how often a
	// request is sent again. Default: those of who resolves the model.
	CallTimeout Duration `json:"call_timeout,omitempty"`
	CallRetries *int     `json:"call_retries,omitempty"`
	// Patience is how long a model that answered before may refuse connections, 0 for not at all.
	// Default: model.DefaultPatience.
	Patience *Duration `json:"patience,omitempty"`
	// MaxWait is the longest wait that a provider may ask for before the user is asked, 0 for any.
	// Default: model.DefaultMaxPause.
	MaxWait *Duration `json:"max_wait,omitempty"`

	// Temperature is 0 to 2. Default: DefaultTemperature.
	Temperature *float64 `json:"temperature,omitempty"`
	// Seed is sent to models that take one.
	Seed *int64 `json:"seed,omitempty"`
	// Mode is default, seeded, strict or logged. Default: default.
	Mode string `json:"mode,omitempty"`

	// Agents are profiles by name; Agent is the one of the tree: what of it is
	// not set here is taken from the profile.
	Agents map[string]Agent `json:"agents,omitempty"`
	Agent  string           `json:"agent,omitempty"`

	// Cite asks models for quotes that support their answers. Quotes are checked
	// against the text; those that are not in it are dropped and counted.
	Cite bool `json:"cite,omitempty"`
	// Schema is a JSON Schema that the answer has to satisfy; in a batch, that
	// of each file. Default: the answer is text.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// ParseConfig reads a configuration from JSON and checks it. All that is wrong
// is reported at once, by the names of the fields; an unknown field is an error
// that names the nearest one. Empty input is the default configuration. The
// error has the code perdure.CodeInvalid.
func ParseConfig(raw json.RawMessage) (Config, error) {
	var c Config
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := decodeStrict(raw, &c); err != nil {
			return Config{}, err
		}
	}
	c = c.withDefaults()
	problems := c.problems()
	if _, err := c.shape(); err != nil {
		problems = append(problems, "schema: "+err.Error())
	}
	if len(problems) > 0 {
		return Config{}, invalid(strings.Join(problems, "; "), "`perdure run --help-all` lists the flags with their values")
	}
	return c, nil
}

// shape compiles the schema; nil without one.
func (c *Config) shape() (*jsonreply.Shape, error) {
	if c.Schema == nil {
		return nil, nil
	}
	return jsonreply.Compile(c.Schema)
}

func invalid(msg, hint string) *perdure.Error {
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "launch run", Msg: msg, Hint: hint}
}

func decodeStrict(raw []byte, c *Config) error {
	err := jsontree.Decode(raw, c, jsontree.Options{})
	if err == nil {
		return nil
	}
	hint := "`perdure run --help-all` lists the flags with their values"
	if e, ok := errors.AsType[*jsontree.Error](err); ok {
		hint = cmp.Or(e.Hint, hint)
	}
	return invalid("read configuration: "+err.Error(), hint)
}

func (c Config) withDefaults() Config {
	c.Schema = normalJSON(c.Schema)
	c.Tools = maps.Clone(c.Tools)
	for name, t := range c.Tools {
		t.Parameters = normalJSON(t.Parameters)
		c.Tools[name] = t
	}
	if len(c.Agents) == 0 {
		c.Agents = nil
	}
	c.useAgent()
	c.nameSubModels()
	c.Model = cmp.Or(c.Model, DefaultModel)
	c.SubModel = cmp.Or(c.SubModel, c.Model)
	if c.Planner != PlannerModel { // else the plan says
		c.Strategy = cmp.Or(c.Strategy, perdure.Parallel)
		c.useMerge()
	}
	if c.Strategy == perdure.Sequential || c.Strategy == StrategyConditional {
		c.Policy = cmp.Or(c.Policy, perdure.PolicyFail)
	}
	c.Policy = cmp.Or(c.Policy, perdure.PolicyPartial)
	c.MaxDepth = cmp.Or(c.MaxDepth, new(DefaultMaxDepth))
	c.MaxChildren = cmp.Or(c.MaxChildren, DefaultMaxChildren)
	c.MaxNodes = cmp.Or(c.MaxNodes, DefaultMaxNodes)
	c.SearchAbove = cmp.Or(c.SearchAbove, DefaultSearchAbove)
	c.SearchReplies = cmp.Or(c.SearchReplies, MaxSearchReplies)
	c.useRepl()
	c.MaxAttempts = cmp.Or(c.MaxAttempts, perdure.DefaultMaxAttempts)
	c.Mode = cmp.Or(c.Mode, ModeDefault)
	if c.MinScore != nil {
		c.GateRounds = cmp.Or(c.GateRounds, DefaultGateRounds)
		c.GateFallback = cmp.Or(c.GateFallback, GateReturnBest)
		c.GateAt = cmp.Or(c.GateAt, GateAtAll)
	}
	c.Temperature = cmp.Or(c.Temperature, new(DefaultTemperature))
	return c
}

// normalJSON is a value in the form in which it is kept; null is nil. What is no
// JSON stays as it is.
func normalJSON(raw json.RawMessage) json.RawMessage {
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" {
		return nil
	}
	if kept, err := json.Marshal(raw); err == nil {
		return kept
	}
	return raw
}

// problems says what is wrong, one sentence a field.
func (c *Config) problems() []string {
	var found []string
	bad := func(field, format string, args ...any) {
		found = append(found, field+": "+fmt.Sprintf(format, args...))
	}
	between := func(field string, n, low, high int64) {
		if n < low || n > high {
			bad(field, "%d is not between %d and %d", n, low, high)
		}
	}
	oneOf := func(field, value string, later []string, now ...string) {
		if value == "" || slices.Contains(now, value) {
			return
		}
		if slices.Contains(later, value) {
			bad(field, "%q is not available in this version; there is %s", value, strings.Join(now, ", "))
			return
		}
		bad(field, "%q is not one of %s", value, strings.Join(now, ", "))
	}
	c.checkNames(bad)
	oneOf("planner", c.Planner, nil, PlannerNone, PlannerSplit, PlannerSearch, PlannerModel, PlannerRepl)
	oneOf("strategy", string(c.Strategy), nil, string(perdure.Parallel), string(perdure.Sequential),
		string(StrategyConditional), string(StrategyMapReduce))
	c.checkMerge(bad, oneOf)
	if c.FanIn != 0 {
		between("fan_in", int64(c.FanIn), 2, maxFanIn)
	}
	c.checkPlanning(bad)
	c.checkSearch(bad)
	c.checkRepl(bad, between, oneOf)
	c.checkFork(bad)
	c.checkSubModels(bad)
	c.checkTools(bad)
	between("search_replies", int64(c.SearchReplies), 1, MaxSearchReplies)
	c.checkAgents(bad)
	if c.MinScore != nil {
		oneOf("gate_fallback", c.GateFallback, nil, GateReturnBest, GateFail, GateEscalate)
		oneOf("gate_at", c.GateAt, nil, GateAtAll, GateAtRoot)
		between("gate_rounds", int64(c.GateRounds), 1, MaxGateRounds)
	}
	c.checkGate(bad)
	c.checkJudging(bad)
	oneOf("policy", string(c.Policy), nil, string(perdure.PolicyPartial), string(perdure.PolicyFail))
	oneOf("on_exhausted", c.OnExhausted, nil, OnExhaustedGate, OnExhaustedFail)
	oneOf("mode", c.Mode, nil, ModeDefault, ModeSeeded, ModeStrict, ModeLogged)
	between("max_depth", int64(*c.MaxDepth), 0, MaxDepthCeiling)
	between("max_children", int64(c.MaxChildren), 2, MaxChildrenCeiling)
	between("max_nodes", c.MaxNodes, 1, math.MaxInt32)
	between("chunk_tokens", int64(c.ChunkTokens), 0, MaxContextWindow)
	between("overlap_tokens", int64(c.OverlapTokens), -1, MaxContextWindow)
	between("overlap_percent", int64(c.OverlapPercent), 0, 50)
	if c.OverlapPercent != 0 && c.OverlapTokens != 0 {
		bad("overlap_percent", "overlap_tokens is given, too")
	}
	if c.ContextWindow != 0 {
		between("context_window", int64(c.ContextWindow), MinContextWindow, MaxContextWindow)
	}
	between("answer_tokens", int64(c.AnswerTokens), 0, MaxContextWindow)
	between("max_attempts", int64(c.MaxAttempts), 1, MaxAttemptsCeiling)
	between("concurrency", int64(c.Concurrency), 0, MaxConcurrency)
	c.checkBounds(bad, between)
	return found
}

func (c *Config) checkNames(bad func(field, format string, args ...any)) {
	checkText(bad, "model", c.Model, maxModelNameBytes)
	checkText(bad, "sub_model", c.SubModel, maxModelNameBytes)
	checkEndpoint(bad, "base_url", c.BaseURL)
	checkFields(bad, "", c.Params, c.Headers)
	checkText(bad, "system", c.System, maxSystemBytes)
	checkText(bad, "judge", c.Judge, len(judgeRule)+score.MaxRuleBytes)
	checkText(bad, "criteria", c.Criteria, maxCriteriaBytes)
	checkText(bad, "escalate_model", c.EscalateModel, maxModelNameBytes)
}

func (c *Config) checkBounds(bad func(field, format string, args ...any),
	between func(field string, n, low, high int64)) {
	if !(c.BudgetUSD >= 0 && c.BudgetUSD <= maxBudgetUSD) {
		bad("budget_usd", "%s is not between 0 and %d", plain(c.BudgetUSD), int64(maxBudgetUSD))
	}
	between("budget_tokens", c.BudgetTokens, 0, math.MaxInt64/4)
	between("budget_calls", c.BudgetCalls, 0, math.MaxInt64/4)
	if c.Timeout < 0 {
		bad("timeout", "%s is negative", time.Duration(c.Timeout))
	}
	if c.CallTimeout < 0 {
		bad("call_timeout", "%s is negative", time.Duration(c.CallTimeout))
	}
	for name, d := range map[string]*Duration{"patience": c.Patience, "max_wait": c.MaxWait} {
		if d != nil && *d < 0 {
			bad(name, "%s is negative", time.Duration(*d))
		}
	}
	if c.CallRetries != nil {
		between("call_retries", int64(*c.CallRetries), 0, maxCallRetries)
	}
	if !(*c.Temperature >= 0 && *c.Temperature <= 2) {
		bad("temperature", "%g is not between 0 and 2", *c.Temperature)
	}
	if c.Schema != nil && strings.HasPrefix(c.Model, "builtin:") {
		bad("schema", "model %q quotes passages and cannot write JSON; choose another with --model", c.Model)
	}
	if c.Cite && c.Schema != nil && c.Planner != PlannerSearch {
		bad("cite", "an answer with a schema has no place for quotes; leave out the schema, or cite, or use planner search")
	}
	c.checkMode(bad)
}

// micros is an amount in millionths of a dollar. The smallest amount is one: 0
// would be no limit at all.
func micros(usd float64) int64 {
	if usd <= 0 {
		return 0
	}
	return max(1, int64(math.Round(usd*microsPerDollar)))
}

// usd writes an amount in millionths of a dollar as dollars, without an exponent.
func usd(micros int64) string { return "$" + plain(float64(micros)/microsPerDollar) }

// plain writes a number without an exponent.
func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// limits are the tree's limits in the store.
func (c *Config) limits() perdure.Limits {
	return perdure.Limits{
		MaxNodes: c.MaxNodes, SoftNodes: DefaultSoftNodes,
		Calls: c.BudgetCalls, Tokens: c.BudgetTokens, CostMicros: micros(c.BudgetUSD),
		WallTime: time.Duration(c.Timeout),
	}
}
