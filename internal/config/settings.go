package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
)

// variablePrefix begins the names of all environment variables of settings.
const variablePrefix = "PERDURE_"

// setting is one line of the table: how a value is called, stored, checked and
// explained.
type setting struct {
	key  string // as in the file; a dot separates a section from its key
	def  string // default as text
	help string // one line for people
	// at returns where the value lives: *string, *int, *int64, *float64 or
	// *time.Duration.
	at func(c *Config) any
	// check returns what is wrong with the value that at points to, or "".
	// Nil: everything is fine.
	check func(value any) string
	// lines allows a text of several lines.
	lines bool
	// none: 0 is written "none" and means that there is no limit. The number 0
	// is refused: who writes it means to allow nothing, and would get all.
	none bool
	// secret tells what in the text is not to be shown or kept in a file; it
	// returns the text without it. Nil: nothing is secret.
	secret func(text string) string
}

// settings is the table, in the order in which people see it.
func settings() []setting {
	return slices.Concat(runSettings(), loopSettings(), metricSettings(), processSettings())
}

// runSettings are those of runs and of the store.
func runSettings() []setting {
	return []setting{
		{key: "model", def: "builtin:extract", help: "what answers: builtin:extract, exec:COMMAND, openai:NAME, " +
			"anthropic:NAME, mock:SCRIPT; after a comma, what stands in when it fails",
			at: func(c *Config) any { return &c.Model }, check: notEmpty},
		{key: "sub_model", help: "what answers for all tasks but the root; empty: the model",
			at: func(c *Config) any { return &c.SubModel }},
		{key: "judge", help: "what scores answers for best-of-n and --min-score: a model, exec:COMMAND or " +
			"rule:EXPRESSION; empty: the model",
			at: func(c *Config) any { return &c.Judge }},
		{key: "base_url", help: "endpoint of an OpenAI-compatible model; empty: the provider's own",
			at: func(c *Config) any { return &c.BaseURL }, check: httpURL, secret: withoutPassword},
		{key: "store", help: "postgres://… to share a store between machines; empty: perdure.db in .perdure",
			at: func(c *Config) any { return &c.Store }, check: storeURL, secret: withoutPassword},
		{key: "concurrency", def: "8", help: "how many tasks of one process run at once",
			at: func(c *Config) any { return &c.Concurrency }, check: between(1, 4096)},
		{key: "max_depth", def: "3", help: "deepest level of a tree; the root is 0",
			at: func(c *Config) any { return &c.MaxDepth }, check: between(0, 5)},
		{key: "max_children", def: "10", help: "most children of a task; more become further levels",
			at: func(c *Config) any { return &c.MaxChildren }, check: between(2, 100_000)},
		{key: "max_nodes", def: "10000", help: "most tasks of a tree",
			at: func(c *Config) any { return &c.MaxNodes }, check: between(1, 10_000_000)},
		{key: "max_attempts", def: "3", help: "how often a task is tried",
			at: func(c *Config) any { return &c.MaxAttempts }, check: between(1, 100)},
		{key: "chunk_tokens", def: "0", help: "size of a part of the context in tokens; 0: from the model",
			at: func(c *Config) any { return &c.ChunkTokens }, check: zeroOr(between(100, 100_000_000))},
		{key: "call_timeout", def: "5m", help: "longest time of one request to a model",
			at: func(c *Config) any { return &c.CallTimeout }, check: positive},
		{key: "call_retries", def: "5", help: "how often a request is sent again after a passing fault",
			at: func(c *Config) any { return &c.CallRetries }, check: between(0, 100)},
		{key: "budget_calls", def: noLimit, help: "most requests of a tree, or none for no limit", none: true,
			at: func(c *Config) any { return &c.BudgetCalls }, check: between(1, maxBudget)},
		{key: "budget_tokens", def: noLimit, help: "most tokens of a tree, or none for no limit", none: true,
			at: func(c *Config) any { return &c.BudgetTokens }, check: between(1, maxBudget)},
		{key: "budget_usd", def: noLimit, help: "most US dollars of a tree, or none for no limit", none: true,
			at: func(c *Config) any { return &c.BudgetUSD }, check: dollars},
		{key: "prices", help: "file of prices that stands above the built-in table; empty: prices.yaml in .perdure, if " +
			"there is one",
			at: func(c *Config) any { return &c.Prices }},
		{key: "cache", def: "false", help: "whether answers are kept and given again to the same request of the same model",
			at: func(c *Config) any { return &c.Cache }},
		{key: "retention.completed", def: "7d", help: "how long completed and cancelled trees are kept",
			at: func(c *Config) any { return &c.RetentionCompleted }, check: positive},
		{key: "retention.failed", def: "30d", help: "after what time failed trees are listed for removal",
			at: func(c *Config) any { return &c.RetentionFailed }, check: positive},
		{key: "retention.remove_failed", def: "false", help: "whether failed trees are removed then, not only listed",
			at: func(c *Config) any { return &c.RetentionRemoveFailed }},
		{key: "retention.checkpoints", def: "10", help: "how many checkpoints of a state are kept",
			at: func(c *Config) any { return &c.RetentionCheckpoints }, check: between(1, perdure.MaxCheckpoints)},
		{key: "retention.handoffs", def: "30d", help: "how long the ledgers of finished handoffs are kept",
			at: func(c *Config) any { return &c.RetentionHandoffs }, check: positive},
		{key: "handoff.warn_percent", def: "75", help: "use of an agent's context at which its handoff is prepared",
			at: func(c *Config) any { return &c.HandoffWarnPercent }, check: between(1, 100)},
		{key: "handoff.stop_percent", def: "90", help: "use of an agent's context at which it is told to stop",
			at: func(c *Config) any { return &c.HandoffStopPercent }, check: between(1, 100)},
	}
}

// processSettings are those of whoever executes.
func processSettings() []setting {
	return []setting{
		{key: "listen", help: "TCP address of the daemon, for example 127.0.0.1:7433; empty: none",
			at: func(c *Config) any { return &c.Listen }, check: hostPort},
		{key: "socket", help: "Unix socket of the daemon; empty: perdure.sock in .perdure",
			at: func(c *Config) any { return &c.Socket }},
		{key: "drain_timeout", def: "30s", help: "how long running tasks may finish when the process stops",
			at: func(c *Config) any { return &c.DrainTimeout }, check: positive},
		{key: "log_level", def: "info", help: "debug, info, warn or error",
			at: func(c *Config) any { return &c.LogLevel }, check: oneOf("debug", "info", "warn", "error")},
		{key: "log_format", def: "text", help: "text or json",
			at: func(c *Config) any { return &c.LogFormat }, check: oneOf("text", "json")},
	}
}

// noLimit is how a setting is written whose limit is none.
const noLimit = "none"

// maxBudget keeps sums of budgets far from overflow.
const maxBudget = 1_000_000_000_000_000

func find(key string) (setting, bool) {
	for _, s := range settings() {
		if s.key == key {
			return s, true
		}
	}
	return findAgentSetting(key)
}

// kind is how a value is written.
type kind int

const (
	textKind kind = iota
	numberKind
	durationKind
	truthKind
)

func (s setting) kind() kind { return s.kindIn(new(Config)) }

// kindIn is kind for callers that ask for many: c is any configuration.
func (s setting) kindIn(c *Config) kind {
	switch s.at(c).(type) {
	case *string:
		return textKind
	case *time.Duration:
		return durationKind
	case *bool:
		return truthKind
	}
	return numberKind
}

// variable is the name of the setting's environment variable.
func (s setting) variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// flag is the name of the setting's flag with its dashes.
func (s setting) flag() string {
	dashes := func(r rune) rune {
		if r == '.' || r == '_' {
			return '-'
		}
		return r
	}
	return "--" + strings.Map(dashes, s.key)
}

// set parses text into its place and returns what is wrong with it, or "".
// Nothing is set when something is wrong.
func (s setting) set(c *Config, text string) string {
	if s.none && text == noLimit {
		return s.clear(c)
	} else if x, err := strconv.ParseFloat(text, 64); s.none && err == nil && x == 0 {
		return fmt.Sprintf("is %s, which allows nothing at all; write %s for no limit", text, noLimit)
	}
	switch p := s.at(c).(type) {
	case *string:
		if problem := s.plain(text); problem != "" {
			return problem
		}
		*p = text
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Sprintf("%s is not a whole number", s.quote(text))
		}
		*p = n
	case *int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Sprintf("%s is not a whole number", s.quote(text))
		}
		*p = n
	case *float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Sprintf("%s is not a number", s.quote(text))
		}
		*p = x
	case *time.Duration:
		d, err := ParseDuration(text)
		if err != nil {
			return err.Error()
		}
		if s.none && d == 0 {
			return fmt.Sprintf("is %s, which allows nothing at all; write %s for no limit", text, noLimit)
		}
		*p = d
	case *bool:
		if text != "true" && text != "false" {
			return fmt.Sprintf("%s is neither true nor false", s.quote(text))
		}
		*p = text == "true"
	}
	return ""
}

// clear sets that there is no limit.
func (s setting) clear(c *Config) string {
	switch p := s.at(c).(type) {
	case *int:
		*p = 0
	case *int64:
		*p = 0
	case *float64:
		*p = 0
	case *time.Duration:
		*p = 0
	}
	return ""
}

// verify checks the value in its place. In the file no secret may stand.
func (s setting) verify(c *Config, kind string) string {
	if s.check != nil && (!s.none || s.text(c) != noLimit) {
		if problem := s.check(s.at(c)); problem != "" {
			return problem
		}
	}
	if s.secret != nil && kind == OriginFile && s.secret(s.text(c)) != s.text(c) {
		return "holds a password, and passwords are not kept in files; give it by the environment (" + s.variable() + ")"
	}
	return ""
}

// text is the value as it would be written in the file.
func (s setting) text(c *Config) string {
	text := s.plainText(c)
	if s.none && (text == "0" || text == FormatDuration(0)) {
		return noLimit
	}
	return text
}

func (s setting) plainText(c *Config) string {
	switch p := s.at(c).(type) {
	case *string:
		return *p
	case *int:
		return strconv.Itoa(*p)
	case *int64:
		return strconv.FormatInt(*p, 10)
	case *float64:
		return strconv.FormatFloat(*p, 'f', -1, 64)
	case *time.Duration:
		return FormatDuration(*p)
	case *bool:
		return strconv.FormatBool(*p)
	}
	return ""
}

// value is the value for JSON: numbers and truths as such, no limit as null,
// durations as text, secrets taken out.
func (s setting) value(c *Config) any {
	if s.none && s.text(c) == noLimit {
		return nil
	}
	switch p := s.at(c).(type) {
	case *int:
		return *p
	case *int64:
		return *p
	case *float64:
		return *p
	case *bool:
		return *p
	}
	return s.shown(c)
}

// shown is the text of the value with secrets taken out.
func (s setting) shown(c *Config) string {
	text := s.text(c)
	if s.secret != nil {
		return s.secret(text)
	}
	return text
}

// quote shows a wrong text, shortened.
func (s setting) quote(text string) string {
	const most = 40
	return strconv.Quote(clip.Runes(text, most))
}

// plain returns what is wrong with a text as such.
func (s setting) plain(text string) string {
	for _, r := range text {
		if s.lines && (r == '\n' || r == '\t') {
			continue
		}
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return "holds a control character or invalid UTF-8"
		}
	}
	return ""
}

func notEmpty(value any) string {
	if strings.TrimSpace(*value.(*string)) == "" {
		return "is empty"
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
			return fmt.Sprintf("is %d, but must be between %d and %d", n, low, high)
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
		return fmt.Sprintf("is %s, but must be longer than 0", FormatDuration(d))
	}
	return ""
}

func dollars(value any) string {
	if x := *value.(*float64); math.IsNaN(x) || x < 0 || x > 1e9 {
		return fmt.Sprintf("is %v, but must be above 0 and at most 1000000000", x)
	}
	return ""
}

func oneOf(words ...string) func(any) string {
	return func(value any) string {
		word := *value.(*string)
		if slices.Contains(words, word) {
			return ""
		}
		problem := fmt.Sprintf("is %q, but must be one of %s", word, strings.Join(words, ", "))
		if near, ok := Nearest(word, words); ok {
			problem += fmt.Sprintf("; did you mean %q?", near)
		}
		return problem
	}
}

// httpURL and storeURL never show the text: it may hold a password.
func httpURL(value any) string {
	text := *value.(*string)
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "is not a URL like https://host/v1"
	}
	return ""
}

func storeURL(value any) string {
	text := *value.(*string)
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return "is not a URL like postgres://user@host/database; a SQLite store is chosen by its folder (" + dirVariable + ")"
	}
	return ""
}

// withoutPassword hides the password of a URL and what its parameters' names
// say is secret. A text that is not a URL is hidden whole.
func withoutPassword(text string) string {
	const hidden = "xxxxx"
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil {
		return hidden
	}
	if _, ok := u.User.Password(); ok {
		u.User = url.UserPassword(u.User.Username(), hidden)
		text = u.String()
	}
	query, changed := u.Query(), false
	for name := range query {
		if name == "key" || isSecret(name) || strings.Contains(name, "password") {
			query.Set(name, hidden)
			changed = true
		}
	}
	if changed {
		u.RawQuery = query.Encode()
		text = u.String()
	}
	return text
}

func hostPort(value any) string {
	text := *value.(*string)
	if text == "" {
		return ""
	}
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Sprintf("%q is not an address like 127.0.0.1:7433", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > math.MaxUint16 {
		return fmt.Sprintf("the port of %q is not a number up to 65535", text)
	}
	return ""
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
