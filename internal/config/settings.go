package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/preprocess"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/nearest"
)

// variablePrefix begins the names of all environment variables of settings.
const variablePrefix = "PERDURE_"

// setting is one setting: its name, place, checks and help.
type setting struct {
	key   string // as in the file; a dot separates a section from its key
	value string // the value's name in the help; "" for true and false
	def   string // default as text
	help  string // one line
	// at points to the value: *string, *int, *int64, *float64, *bool or *time.Duration;
	// **float64 if the value can be unset.
	at any
	// check returns the problem of the value that at points to, or "". Nil accepts
	// every value.
	check func(value any) string
	// lines allows several lines of text.
	lines bool
	// none allows the value "none" for no limit, which is stored as 0. The number 0
	// is an error, because it could also mean that nothing is allowed.
	none bool
	// secret returns text without its secret part, which is not printed and not
	// allowed in a file. Nil: no part is secret.
	secret func(text string) string
	// acts returns what a value of the file does if it acts, see [Acting], or "". Nil: no
	// value acts.
	acts func(text string) string
}

// settings returns all settings in the order of the settings file.
func settings(c *Config) []setting {
	return slices.Concat(runSettings(c), loopSettings(c), heldOutSettings(c), metricSettings(c), processSettings(c))
}

// runSettings are the settings of runs and of the store.
func runSettings(c *Config) []setting {
	return []setting{
		{key: "model", at: &c.Model, value: "MODEL", def: "builtin:extract", check: notEmpty, acts: ModelEffect,
			help: "builtin:extract, openai:NAME, anthropic:NAME, exec:COMMAND or mock:SCRIPT; fallbacks follow after commas"},
		{key: "sub_model", at: &c.SubModel, value: "MODEL", acts: ModelEffect,
			help: "model of the tasks below the root, if different from the model"},
		{key: "judge", at: &c.Judge, value: "MODEL", acts: ModelEffect,
			help: "judge for best-of-n and --min-score, if it is not the model: a model, exec:COMMAND or rule:EXPRESSION"},
		{key: "base_url", at: &c.BaseURL, value: "URL", check: optional(httpURL), secret: withoutPassword,
			acts: acts(effectBaseURL),
			help: "endpoint of openai: models, if it is not the provider's"},
		{key: "store", at: &c.Store, value: "URL", check: optional(storeURL), secret: withoutPassword,
			acts: acts("connects to this database"),
			help: "postgres:// URL of a shared store, if it is not perdure.db in .perdure"},
		{key: "concurrency", at: &c.Concurrency, value: "N", def: "8", check: between(1, 4096),
			help: "tasks that a process runs at once"},
		{key: "max_depth", at: &c.MaxDepth, value: "N", def: "3", check: between(0, 5),
			help: "maximum depth of a tree; the root has depth 0"},
		{key: "max_children", at: &c.MaxChildren, value: "N", def: "10", check: between(2, 100_000),
			help: "maximum children of a task; further ones go to deeper levels"},
		{key: "max_nodes", at: &c.MaxNodes, value: "N", def: "10000", check: between(1, 10_000_000),
			help: "maximum tasks of a tree"},
		{key: "max_attempts", at: &c.MaxAttempts, value: "N", def: "3", check: between(1, 100),
			help: "maximum attempts of a task"},
		{key: "chunk_tokens", at: &c.ChunkTokens, value: "N", def: "0", check: zeroOr(between(100, 100_000_000)),
			help: "tokens in a part of the context; 0: chosen for the model"},
		{key: "search_above", at: &c.SearchAbove, value: "N", def: "60", none: true, check: between(1, 10_000_000),
			help: "calls to read everything above which planner search is the default, or none: never"},
		{key: "pre", at: &c.Pre, value: "PATTERN=COMMAND", lines: true, check: optional(preRules), acts: acts(effectRuns),
			help: "command that turns files with such names into text, for example '*.pdf=pdftotext - -'; repeatable, or " +
				"one a line"},
		{key: "repl_python", at: &c.ReplPython, value: "PROGRAM", def: "python3", check: notEmpty, acts: acts(effectRuns),
			help: "Python interpreter that runs the code of planner repl"},
		{key: "repl_unsandboxed", at: &c.ReplUnsandboxed, def: "false",
			acts: actsAs("runs code of models without a sandbox", "true"),
			help: "run the code of planner repl without a sandbox if the system has none"},
		{key: "call_timeout", at: &c.CallTimeout, value: "TIME", def: "5m", check: positive,
			help: "timeout of a model request"},
		{key: "call_retries", at: &c.CallRetries, value: "N", def: "5", check: between(0, 100),
			help: "retries of a model request after a transient error"},
		{key: "patience", at: &c.Patience, value: "TIME", def: "5m", none: true, check: positive,
			help: "time to wait for a model server that answered before and refuses connections, or none"},
		{key: "max_wait", at: &c.MaxWait, value: "TIME", def: "30m", none: true, check: positive,
			help: "longest wait that a provider may ask for; above it the run asks at a gate; none: any"},
		{key: "budget_calls", at: &c.BudgetCalls, value: "N", def: noLimit, none: true, check: between(1, maxBudget),
			help: "maximum model calls of a tree, or none"},
		{key: "budget_tokens", at: &c.BudgetTokens, value: "N", def: noLimit, none: true, check: between(1, maxBudget),
			help: "maximum tokens of a tree, or none"},
		{key: "budget_usd", at: &c.BudgetUSD, value: "USD", def: noLimit, none: true, check: atMost(1_000_000_000),
			help: "maximum cost of a tree in US dollars, or none"},
		{key: "confirm_above", at: &c.ConfirmAbove, value: "USD", def: noLimit, none: true, check: atMost(1_000_000_000),
			help: "cost in US dollars above which a run asks before it starts, or none"},
		{key: "prices", at: &c.Prices, value: "FILE", acts: acts(effectPrices),
			help: "prices that override the built-in ones, if not in prices.yaml in .perdure"},
		{key: "cache", at: &c.Cache, def: "false", acts: actsAs("uses the answers that .perdure/cache contains", "true"),
			help: "keep answers and reuse them for identical requests"},
		{key: "structured_output", at: &c.StructuredOutput, def: "true",
			help: "have the provider hold answers to a schema, where it can"},
		{key: "prompt_caching", at: &c.PromptCaching, def: "true",
			help: "have the provider keep the beginning of prompts that several requests share, where it has to be asked"},
		{key: "params", at: &c.Params, value: "JSON", check: optional(jsonObject), acts: acts(effectParams),
			help: "further parameters of model requests, such as {\"top_p\": 0.9}"},
		{key: "headers", at: &c.Headers, value: "JSON", check: optional(jsonObject), acts: acts(effectHeaders),
			help: "further headers of model requests, with values from variables, such as {\"X-Team\": \"$TEAM\"}"},
		{key: "native_tools", at: &c.NativeTools, def: "true",
			help: "offer the requests of a search as tools to providers that have them"},
		{key: "retention.completed", at: &c.RetentionCompleted, value: "TIME", def: "7d", check: positive,
			help: "time to keep completed and cancelled trees"},
		{key: "retention.failed", at: &c.RetentionFailed, value: "TIME", def: "30d", check: positive,
			help: "time after which failed trees are listed for removal"},
		{key: "retention.remove_failed", at: &c.RetentionRemoveFailed, def: "false",
			help: "remove failed trees after that time"},
		{key: "retention.checkpoints", at: &c.RetentionCheckpoints, value: "N", def: "10",
			check: between(1, perdure.MaxCheckpoints),
			help:  "checkpoints to keep of each state"},
		{key: "retention.handoffs", at: &c.RetentionHandoffs, value: "TIME", def: "30d", check: positive,
			help: "time to keep the ledgers of finished handoffs"},
		{key: "handoff.warn_percent", at: &c.HandoffWarnPercent, value: "PERCENT", def: "75", check: between(1, 100),
			help: "use of an agent's context at which the agent prepares a handoff"},
		{key: "handoff.stop_percent", at: &c.HandoffStopPercent, value: "PERCENT", def: "90", check: between(1, 100),
			help: "use of an agent's context at which the agent has to stop"},
	}
}

// processSettings are the settings of processes that execute trees.
func processSettings(c *Config) []setting {
	return []setting{
		{key: "listen", at: &c.Listen, value: "ADDRESS", check: optional(hostPort), acts: acts("listens on this address"),
			help: "TCP address of the daemon, such as 127.0.0.1:7433"},
		{key: "socket", at: &c.Socket, value: "PATH", acts: acts("connects to this socket"),
			help: "Unix socket of the daemon, if it is not perdure.sock in .perdure"},
		{key: "drain_timeout", at: &c.DrainTimeout, value: "TIME", def: "30s", check: positive,
			help: "time that running tasks have to finish when a process stops"},
		{key: "log_level", at: &c.LogLevel, value: "LEVEL", def: "info", check: oneOf("debug", "info", "warn", "error"),
			help: "level of log messages: debug, info, warn or error"},
		{key: "log_format", at: &c.LogFormat, value: "FORMAT", def: "text", check: oneOf("text", "json"),
			help: "format of log messages: text or json"},
	}
}

// noLimit is the value of a setting without a limit.
const noLimit = "none"

// maxBudget bounds budgets, so that their sums do not overflow.
const maxBudget = 1_000_000_000_000_000

// find returns the setting of a key, also one of a profile or a tool.
func find(c *Config, key string) (setting, bool) {
	table := settings(c)
	if entry := entryName(key); entry != "" {
		table = entrySettings(c, entry)
	}
	i := slices.IndexFunc(table, func(s setting) bool { return s.key == key })
	if i < 0 {
		return setting{}, false
	}
	return table[i], true
}

// isText reports whether the value is text.
func (s setting) isText() bool {
	_, ok := s.at.(*string)
	return ok
}

// current returns the value.
func (s setting) current() any {
	if p, ok := s.at.(**float64); ok {
		return **p
	}
	return reflect.ValueOf(s.at).Elem().Interface()
}

// variable returns the name of the setting's environment variable.
func (s setting) variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// flag returns the name of the setting's flag with its dashes.
func (s setting) flag() string {
	return "--" + strings.NewReplacer(".", "-", "_", "-").Replace(s.key)
}

// set parses and stores text. It returns the problem of text, or "", and stores
// nothing if there is one.
func (s setting) set(text string) string {
	if s.none && text == noLimit {
		reflect.ValueOf(s.at).Elem().SetZero()
		return ""
	}
	if x, err := strconv.ParseFloat(text, 64); s.none && err == nil && x == 0 {
		return fmt.Sprintf("%s is not a limit; write %s for no limit", text, noLimit)
	}
	switch p := s.at.(type) {
	case *string:
		if problem := s.plain(text); problem != "" {
			return problem
		}
		*p = text
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Sprintf("%s is not a whole number", quote(text))
		}
		*p = n
	case *int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Sprintf("%s is not a whole number", quote(text))
		}
		*p = n
	case *float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Sprintf("%s is not a number", quote(text))
		}
		*p = x
	case **float64:
		x := new(float64)
		*p = x
		return setting{at: x}.set(text)
	case *time.Duration:
		d, err := ParseDuration(text)
		if err != nil {
			return err.Error()
		}
		if s.none && d == 0 {
			return fmt.Sprintf("%s is not a limit; write %s for no limit", text, noLimit)
		}
		*p = d
	case *bool:
		if text != "true" && text != "false" {
			return fmt.Sprintf("%s is neither true nor false", quote(text))
		}
		*p = text == "true"
	}
	return ""
}

// verify checks the stored value. Secrets are not allowed in the file.
func (s setting) verify(kind string) string {
	if s.check != nil && (!s.none || s.text() != noLimit) {
		if problem := s.check(s.at); problem != "" {
			return problem
		}
	}
	if s.secret != nil && kind == OriginFile && s.secret(s.text()) != s.text() {
		problem := "contains a password, which is not allowed in a file"
		if s.secret(s.text()) == hiddenFromAgents(s.text()) {
			problem = "is not allowed in this file, which agents can read"
		}
		if entryName(s.key) == "" {
			problem += "; set " + s.variable() + " instead"
		}
		return problem
	}
	return ""
}

// text returns the value as in the file.
func (s setting) text() string {
	if s.none && reflect.ValueOf(s.at).Elem().IsZero() {
		return noLimit
	}
	switch value := s.current().(type) {
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case time.Duration:
		return FormatDuration(value)
	default:
		return fmt.Sprint(value)
	}
}

// jsonValue returns the value for JSON: numbers and booleans as such, no limit as
// null, durations as text, without secrets.
func (s setting) jsonValue() any {
	if s.none && s.text() == noLimit {
		return nil
	}
	switch value := s.current().(type) {
	case string, time.Duration:
		return s.shown()
	default:
		return value
	}
}

// shown returns the text of the value without secrets.
func (s setting) shown() string {
	text := s.text()
	if s.secret != nil {
		return s.secret(text)
	}
	return text
}

// quote quotes an invalid text, shortened.
func quote(text string) string { return strconv.Quote(clip.Runes(text, 40)) }

// plain returns the problem of a text of any setting, or "".
func (s setting) plain(text string) string {
	for _, r := range text {
		if s.lines && (r == '\n' || r == '\t') {
			continue
		}
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return "contains a control character or invalid UTF-8"
		}
	}
	return ""
}

func notEmpty(value any) string {
	if strings.TrimSpace(*value.(*string)) == "" {
		return "the value is empty"
	}
	return ""
}

func number(value any) int64 {
	if p, ok := value.(*int64); ok {
		return *p
	}
	return int64(*value.(*int))
}

func between(low, high int64) func(any) string {
	return func(value any) string {
		if n := number(value); n < low || n > high {
			return fmt.Sprintf("%d is not between %d and %d", n, low, high)
		}
		return ""
	}
}

func zeroOr(check func(any) string) func(any) string {
	return func(value any) string {
		if number(value) == 0 {
			return ""
		}
		if problem := check(value); problem != "" {
			return problem + ", or 0"
		}
		return ""
	}
}

func positive(value any) string {
	if d := *value.(*time.Duration); d <= 0 {
		return fmt.Sprintf("%s is not longer than 0", FormatDuration(d))
	}
	return ""
}

func atMost(high int) func(any) string {
	return func(value any) string {
		if x := *value.(*float64); !(x >= 0 && x <= float64(high)) {
			return fmt.Sprintf("%v is not between 0 and %d", x, high)
		}
		return ""
	}
}

func oneOf(words ...string) func(any) string {
	return func(value any) string {
		word := *value.(*string)
		if slices.Contains(words, word) {
			return ""
		}
		problem := fmt.Sprintf("%q is not one of %s", word, strings.Join(words, ", "))
		if near, ok := nearest.Word(word, words); ok {
			problem += fmt.Sprintf("; did you mean %q?", near)
		}
		return problem
	}
}

// preRules returns what is wrong with rules of preprocess, or "".
func preRules(text string) string {
	if _, err := preprocess.ParseAll(text); err != nil {
		return err.Error()
	}
	return ""
}

// optional accepts "" and checks other text.
func optional(check func(text string) string) func(any) string {
	return func(value any) string {
		if text := *value.(*string); text != "" {
			return check(text)
		}
		return ""
	}
}

// httpURL and storeURL do not print the text, which can contain a password.
func httpURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "the value is not a URL such as https://host/v1"
	}
	return ""
}

func storeURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return "the value is not a URL such as postgres://user@host/database; " + dirVariable + " chooses a SQLite store"
	}
	return ""
}

func hostPort(text string) string {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Sprintf("%q is not an address such as 127.0.0.1:7433", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > math.MaxUint16 {
		return fmt.Sprintf("the port of %q is not a number up to 65535", text)
	}
	return ""
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
