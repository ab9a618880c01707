package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/nearest"
)

const (
	// FolderName is the name of the folder that holds a project's store,
	// settings and socket.
	FolderName = ".perdure"
	// FileName is the name of the settings file in that folder.
	FileName = "config.yaml"
)

// Config holds the effective settings. A Config from [Load] or [Default] is within
// the limits of the table.
type Config struct {
	// Model is the model; SubModel, if not empty, is the model of all tasks but the
	// root. BaseURL is the endpoint of an OpenAI-compatible model, empty for the
	// provider's own.
	Model    string
	SubModel string
	BaseURL  string
	// Judge scores answers, in runs that need scores; empty: the Model.
	Judge string
	// Agents are the profiles by name; nil if there are none.
	Agents map[string]*Agent
	// Tools are the tools of the models by name; nil if there are none.
	Tools map[string]*Tool
	// Store is the URL of a PostgreSQL store. Empty: the SQLite file in the
	// .perdure folder.
	Store string
	// Concurrency is the number of tasks that a process runs at once.
	Concurrency int
	// Limits of a tree.
	MaxDepth    int
	MaxChildren int
	MaxNodes    int
	MaxAttempts int
	// ChunkTokens is the size of a part of the context. 0: chosen for the model.
	ChunkTokens int
	// SearchAbove is the number of calls above which planner search is the default. 0:
	// it never is.
	SearchAbove int
	// Pre are commands that turn files of a context into text, PATTERN=COMMAND, one a line.
	Pre string
	// ReplUnsandboxed lets the code of planner repl run without a sandbox, ReplPython is the
	// Python that runs it.
	ReplUnsandboxed bool
	ReplPython      string
	// CallTimeout is the timeout of a model request, CallRetries the number of its
	// retries.
	CallTimeout time.Duration
	CallRetries int
	// Patience is the time to wait for a model server that refuses connections, MaxWait the longest
	// wait that a provider may ask for. 0: none and any.
	Patience, MaxWait time.Duration
	// Budgets of a tree. 0: none.
	BudgetCalls  int64
	BudgetTokens int64
	BudgetUSD    float64
	// ConfirmAbove is the estimated cost in US dollars above which a run asks before it
	// starts. 0: it never asks.
	ConfirmAbove float64
	// Prices is a file of prices that override the built-in ones; empty: prices.yaml
	// in the .perdure folder, if it exists. See package price.
	Prices string
	// Params and Headers are JSON objects of further parameters and headers of model requests.
	// The values of headers name environment variables.
	Params, Headers string
	// Cache keeps answers and reuses them.
	Cache bool
	// StructuredOutput has providers hold answers to a schema, PromptCaching has them keep
	// the beginning of prompts that several requests share, NativeTools has models call tools
	// of their provider.
	StructuredOutput bool
	PromptCaching    bool
	NativeTools      bool
	// Retention of ended trees, checkpoints and handoffs.
	RetentionCompleted    time.Duration
	RetentionFailed       time.Duration
	RetentionRemoveFailed bool
	RetentionCheckpoints  int
	RetentionHandoffs     time.Duration
	// HandoffWarnPercent and HandoffStopPercent are the used parts of an agent's
	// context at which the agent prepares a handoff, and at which it has to stop.
	HandoffWarnPercent int
	HandoffStopPercent int
	// Loop holds the settings of loops.
	Loop Loop
	// Listen is the daemon's TCP address, empty for none. Socket is its Unix
	// socket, empty for perdure.sock in the .perdure folder.
	Listen string
	Socket string
	// DrainTimeout is the time that running tasks have to finish when a process stops.
	DrainTimeout time.Duration
	// LogLevel is debug, info, warn or error; LogFormat is text or json.
	LogLevel  string
	LogFormat string
}

// Default returns the defaults.
func Default() Config {
	var c Config
	for _, s := range settings(&c) {
		_ = s.set(s.def) // TestDefaults checks them
	}
	return c
}

// Sources are the inputs of [Load].
type Sources struct {
	// Dir is the absolute path of the folder from which the .perdure folder is
	// searched upwards. Relative paths in PERDURE_DIR are relative to it.
	Dir string
	// Environ holds the environment variables as KEY=value. A variable with an empty
	// value counts as unset.
	Environ []string
	// Flags holds the flags that the user gave, by the key of the setting.
	Flags map[string]string
}

// Loaded are the settings that [Load] read.
type Loaded struct {
	Config
	// Dir is the .perdure folder, absolute. Exists reports whether it exists; if not,
	// the first command that writes creates it.
	Dir    string
	Exists bool
	// File is the settings file that was read, empty if there is none.
	File string
	// Warnings list environment variables whose names look like misspelled settings.
	Warnings []string

	origins map[string]origin
	dirFrom origin
	acting  []acting
	// actingIgnored is set by IgnoreActing.
	actingIgnored bool
	pricesIgnored bool
}

// origin is the origin of a value: its kind, and the place for messages.
type origin struct{ kind, where string }

// given is a value as written.
type given struct {
	text   string
	origin origin
	// problem, if not empty, is the reason why the value cannot be used.
	problem string
}

// dirVariable overrides the search for the .perdure folder.
const dirVariable = "PERDURE_DIR"

// Load finds the .perdure folder, reads its settings file, if there is one, and
// merges the sources. The error is a [perdure.Error] of code invalid that lists all
// problems with their places, one a line.
func Load(src Sources) (*Loaded, error) {
	env := environment(src.Environ)
	l := &Loaded{origins: make(map[string]origin)}
	if err := l.locate(src.Dir, env[dirVariable]); err != nil {
		return nil, err
	}
	l.Config = Default()
	file, problems := l.readFile()
	for _, s := range settings(&l.Config) {
		layers := []given{file[s.key]}
		if text := env[s.variable()]; text != "" {
			layers = append(layers, given{text: text, origin: origin{OriginEnv, s.variable()}})
		}
		if text, ok := src.Flags[s.key]; ok {
			layers = append(layers, given{text: text, origin: origin{OriginFlag, s.flag()}})
		}
		l.origins[s.key] = origin{kind: OriginDefault}
		for _, g := range layers {
			problems = append(problems, l.apply(s, g)...)
		}
	}
	problems = append(problems, l.loadEntries(file)...)
	l.acting = l.findActing(file)
	problems = append(problems, unknownFlags(src.Flags)...)
	l.Warnings = nearlyVariables(env)
	if len(problems) > 0 {
		return nil, invalid(problems)
	}
	return l, nil
}

// apply sets a value. It also checks values that a later source overrides.
func (l *Loaded) apply(s setting, g given) []error {
	if g.origin.kind == "" {
		return nil
	}
	problem := g.problem
	if problem == "" {
		problem = s.set(g.text)
	}
	if problem == "" {
		problem = s.verify(g.origin.kind)
	}
	switch {
	case problem == "":
		l.origins[s.key] = g.origin
		return nil
	case g.origin.kind == OriginFlag: // the flag names the setting
		return []error{fmt.Errorf("%s: %s", g.origin.where, problem)}
	}
	return []error{fmt.Errorf("%s: %s: %s", g.origin.where, s.key, problem)}
}

// locate sets Dir and Exists.
func (l *Loaded) locate(start, override string) error {
	if override != "" {
		l.Dir, l.dirFrom = override, origin{OriginEnv, dirVariable}
		if !filepath.IsAbs(l.Dir) {
			l.Dir = filepath.Join(start, l.Dir)
		}
		info, err := os.Stat(l.Dir)
		switch {
		case err == nil && !info.IsDir():
			return invalid([]error{fmt.Errorf("%s: %q is not a folder", dirVariable, l.Dir)})
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return invalid([]error{fmt.Errorf("%s: %w", dirVariable, err)})
		}
		l.Exists = err == nil
		return nil
	}
	dir, err := Find(start)
	if err != nil {
		return err
	}
	l.Dir, l.Exists, l.dirFrom = dir, dir != "", origin{kind: OriginDefault}
	if !l.Exists {
		l.Dir = filepath.Join(start, FolderName)
	}
	return nil
}

// environment keeps the variables that begin with PERDURE_ and have a value.
func environment(environ []string) map[string]string {
	env := make(map[string]string)
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, variablePrefix) && value != "" {
			env[name] = value
		}
	}
	return env
}

// nearlyVariables returns warnings about variables whose names look like misspelled
// settings.
func nearlyVariables(env map[string]string) []string {
	names := []string{dirVariable}
	for _, s := range settings(new(Config)) {
		names = append(names, s.variable())
	}
	var warnings []string
	for _, name := range sortedKeys(env) {
		known := slices.Contains(names, name) || slices.Contains(ownVariables(), strings.TrimPrefix(name, variablePrefix))
		if near, ok := nearest.ByEdits(name, names); ok && !known {
			warnings = append(warnings, fmt.Sprintf("unknown environment variable %s; did you mean %s?", name, near))
		}
	}
	return warnings
}

// ownVariables are the variables, without prefix, that are no settings: perdure sets them for
// the programs that it starts, or reads them elsewhere.
func ownVariables() []string {
	return []string{"AGENT", "CHECK", "EVENT", "FENCE", "FILE", "GATE_TOKEN", "HANDOFF_FILE", "HANDOFF_ROOT",
		"HANDOFF_TASK", "HANDOFF_TOKEN", "HOOK", "HOOK_SOCKET", "ITERATION", "LOOP", "PROMPT", "SESSION",
		"TASK", "TEXT", "TITLE", "TREE", "TRUST"}
}

func unknownFlags(flags map[string]string) []error {
	var problems []error
	for _, key := range sortedKeys(flags) {
		if _, ok := find(new(Config), key); !ok {
			problems = append(problems, fmt.Errorf("flag for %s", unknownKey(key)))
		}
	}
	return problems
}

// maxProblems bounds the problems that are listed.
const maxProblems = 20

func invalid(problems []error) error {
	if more := len(problems) - maxProblems; more > 1 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Errorf("and %s", human.Count(more, "more problem")))
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "read configuration", Err: errors.Join(problems...)}
}
