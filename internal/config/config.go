// Package config finds the project's .perdure folder and merges what a command
// is told about its settings: flags over environment over the file config.yaml
// over built-in defaults. Everything is checked at once, and every value knows
// where it came from.
//
// All settings stand in one table (settings.go). The file, the environment,
// the flags, the template of the file and the listing of values are made from
// it, so that a new setting is one line.
package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure"
)

// Config is every setting with its effective value. The tables of settings.go
// hold defaults and limits; a Config from [Load] or [Default] keeps them.
type Config struct {
	// Model answers; SubModel, when not empty, answers for all tasks but the
	// root. BaseURL is the endpoint of an OpenAI-compatible model, empty for
	// the provider's own.
	Model    string
	SubModel string
	BaseURL  string
	// Judge scores answers where a run has that; empty: the Model.
	Judge string
	// Agents are profiles by name; nil without any.
	Agents map[string]*Agent
	// Store is the URL of a PostgreSQL store. Empty: the SQLite file in the
	// .perdure folder.
	Store string
	// Concurrency is how many tasks of one process run at once.
	Concurrency int
	// Limits of a tree.
	MaxDepth    int
	MaxChildren int
	MaxNodes    int
	MaxAttempts int
	// ChunkTokens is the size of a part of the context. 0: from the model.
	ChunkTokens int
	// CallTimeout ends one request to a model; CallRetries is how often it is
	// sent again.
	CallTimeout time.Duration
	CallRetries int
	// Budgets of a tree. 0: none.
	BudgetCalls  int64
	BudgetTokens int64
	BudgetUSD    float64
	// Prices is a file that stands above the built-in table of prices; empty:
	// prices.yaml in the .perdure folder, if there is one. See package price.
	Prices string
	// Cache keeps answers and gives them again.
	Cache bool
	// How long trees are kept after their end.
	RetentionCompleted    time.Duration
	RetentionFailed       time.Duration
	RetentionRemoveFailed bool
	RetentionCheckpoints  int
	RetentionHandoffs     time.Duration
	// HandoffWarnPercent and HandoffStopPercent are the parts of an agent's
	// context at which a handoff is prepared, and at which it is to stop.
	HandoffWarnPercent int
	HandoffStopPercent int
	// Loop is what loops are begun with.
	Loop Loop
	// Listen is the daemon's TCP address, empty for none. Socket is its Unix
	// socket, empty for perdure.sock in the .perdure folder.
	Listen string
	Socket string
	// DrainTimeout is how long a stopping process lets running tasks finish.
	DrainTimeout time.Duration
	// LogLevel is debug, info, warn or error; LogFormat is text or json.
	LogLevel  string
	LogFormat string
}

// Default returns the built-in values.
func Default() Config {
	var c Config
	for _, s := range settings() {
		// The table's own texts parse; TestDefaults holds it to that.
		_ = s.set(&c, s.def)
	}
	return c
}

// Sources is what [Load] merges.
type Sources struct {
	// Dir is the absolute path from which the .perdure folder is searched
	// upwards; relative paths in PERDURE_DIR count from here.
	Dir string
	// Environ are the variables of the environment as KEY=value, as from
	// os.Environ. A variable with an empty value counts as not set.
	Environ []string
	// Flags are the flags the user gave, by the key of the setting.
	Flags map[string]string
}

// Loaded is the merged configuration.
type Loaded struct {
	Config
	// Dir is the .perdure folder, absolute. Exists tells whether it is there;
	// if not, Dir is where the first command that writes will make it.
	Dir    string
	Exists bool
	// File is the configuration file that was read, empty without one.
	File string
	// Warnings are oddities that stop nobody: a variable whose name is nearly
	// that of a setting.
	Warnings []string

	origins map[string]origin
	dirFrom origin
}

// origin is where a value came from: the kind for programs, the place for
// people.
type origin struct{ kind, where string }

// given is a value as somebody wrote it.
type given struct {
	text   string
	origin origin
	// problem, when not empty, says why the text cannot be used at all.
	problem string
}

// dirVariable overrides the search for the .perdure folder.
const dirVariable = "PERDURE_DIR"

// Load finds the .perdure folder, reads its configuration file if there is
// one, and merges the sources. The error is a [perdure.Error] of code invalid
// that names every problem with its place, each on a line of its own. Without
// a configuration file Load opens no file and parses nothing.
func Load(src Sources) (*Loaded, error) {
	env := environment(src.Environ)
	l := &Loaded{origins: make(map[string]origin)}
	if err := l.locate(src.Dir, env[dirVariable]); err != nil {
		return nil, err
	}
	l.Config = Default()
	file, problems := l.readFile()
	for _, s := range settings() {
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
	problems = append(problems, l.loadAgents(file)...)
	problems = append(problems, unknownFlags(src.Flags)...)
	l.Warnings = nearlyVariables(env)
	if len(problems) > 0 {
		return nil, invalid(problems)
	}
	return l, nil
}

// apply takes a value over. A value that a stronger source overrides is
// checked too: it would surprise later.
func (l *Loaded) apply(s setting, g given) []error {
	if g.origin.kind == "" {
		return nil
	}
	problem := g.problem
	if problem == "" {
		problem = s.set(&l.Config, g.text)
	}
	if problem == "" {
		problem = s.verify(&l.Config, g.origin.kind)
	}
	if problem != "" {
		return []error{fmt.Errorf("%s: %s: %s", g.origin.where, s.key, problem)}
	}
	l.origins[s.key] = g.origin
	return nil
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
		return invalid([]error{err})
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

// nearlyVariables warns of variables that are no setting but look like one
// misspelt. Others are none of our business: the program uses some more
// itself.
func nearlyVariables(env map[string]string) []string {
	known := map[string]bool{dirVariable: true}
	names := []string{dirVariable}
	for _, s := range settings() {
		known[s.variable()] = true
		names = append(names, s.variable())
	}
	var warnings []string
	for _, name := range sortedKeys(env) {
		if known[name] {
			continue
		}
		if near, ok := nearestByEdits(name, names); ok {
			warnings = append(warnings, fmt.Sprintf("the environment variable %s is not used; did you mean %s?", name, near))
		}
	}
	return warnings
}

func unknownFlags(flags map[string]string) []error {
	var problems []error
	for _, key := range sortedKeys(flags) {
		if _, ok := find(key); !ok {
			problems = append(problems, fmt.Errorf("flag for %s", unknownKey(key)))
		}
	}
	return problems
}

func invalid(problems []error) error {
	return &perdure.Error{
		Code: perdure.CodeInvalid,
		Op:   "read configuration",
		Err:  errors.Join(problems...),
	}
}
