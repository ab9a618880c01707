package price

import (
	_ "embed"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// The built-in table: its version and the day it is from. A test holds the
// version against go.mod, so that a newer table comes with its date.
const (
	TableVersion = "v0.51.0"
	TableDate    = "2026-07-23"
)

// table is the built-in table, made from the data of charm.land/catwalk. A line
// "@" and the address of a provider, as [address] writes it, begins the models
// of the provider: one line for each, with the fields of an entry in their order,
// separated by tabs. "go test ./model/price -update" writes it.
//
//go:embed table.txt
var table string

// The first words of models' names, which say how a model is asked.
const (
	schemeBuiltin   = "builtin"
	schemeExec      = "exec"
	schemeMock      = "mock"
	schemeOpenAI    = "openai"
	schemeAnthropic = "anthropic"
)

// Config configures [New].
type Config struct {
	// File holds the user's prices; empty when there is none. A file that is
	// named and not there is an error, see Optional.
	File string
	// Optional says that it is fine when the file is not there.
	Optional bool
}

// Table finds rates. It reads the user's file when it is first needed, once. It
// is safe for concurrent use.
type Table struct {
	user func() (*overrides, error)
}

// New returns a table that has read nothing yet.
func New(cfg Config) *Table {
	return &Table{user: sync.OnceValues(func() (*overrides, error) { return readFile(cfg) })}
}

// Rate returns what is known of the model of this name ("openai:gpt-4o",
// "exec:ollama run llama3") at an endpoint, whose base URL is empty for the
// provider's own. What is not known is not an error. The error, of the user's
// file, is an *Error that names line and field.
//
// Prices are those of an endpoint: a model of the same name behind another
// address, such as a server on this machine, has another price, which is
// unknown unless the user's file has it.
func (t *Table) Rate(name, baseURL string) (Rate, error) {
	user, err := t.user()
	if err != nil {
		return Rate{}, err
	}
	rate := Rate{}
	scheme, model, _ := strings.Cut(name, ":")
	switch scheme {
	case schemeBuiltin, schemeMock:
		rate = Rate{Known: true, Source: "costs nothing"}
	case schemeOpenAI, schemeAnthropic:
		if o := user.find(name); o != nil && o.complete() {
			return o.over(rate), nil // without the work of the table
		}
		rate = builtIn(scheme, model, baseURL)
	}
	if o := user.find(name); o != nil {
		rate = o.over(rate)
	}
	return rate, nil
}

// entry is a line of the built-in table.
type entry struct {
	id string
	// Prices in US dollars for a million tokens; see rateOf on the cached ones.
	in, out, inCached, outCached float64
	window, maxOutput            int
}

// The addresses of the providers that a name without a base URL means.
const (
	openAIAddress    = "api.openai.com"
	anthropicAddress = "api.anthropic.com"
)

// entriesAt returns the models of the provider at an address.
func entriesAt(address string) []entry {
	_, rest, ok := strings.Cut(table, "\n@"+address+"\n")
	if !ok || address == "" {
		return nil
	}
	var entries []entry
	for line := range strings.Lines(rest) {
		if line[0] == '@' {
			break
		}
		if e, err := parseEntry(strings.TrimSuffix(line, "\n")); err == nil { // a test parses all
			entries = append(entries, e)
		}
	}
	return entries
}

func parseEntry(line string) (entry, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != 7 {
		return entry{}, fmt.Errorf("line %q has %d fields, want 7", line, len(fields))
	}
	e := entry{id: fields[0]}
	for i, into := range []*float64{&e.in, &e.out, &e.inCached, &e.outCached} {
		var err error
		if *into, err = strconv.ParseFloat(fields[1+i], 64); err != nil {
			return entry{}, err
		}
	}
	for i, into := range []*int{&e.window, &e.maxOutput} {
		var err error
		if *into, err = strconv.Atoi(fields[5+i]); err != nil {
			return entry{}, err
		}
	}
	return e, nil
}

// address is a base URL as a key: two ways of writing one are one.
func address(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" {
		return ""
	}
	path := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1")
	return strings.ToLower(u.Host) + path
}

// builtIn returns the rate of a model at an address, from the built-in table.
func builtIn(scheme, name, baseURL string) Rate {
	at := address(baseURL)
	if baseURL == "" {
		at = map[string]string{schemeOpenAI: openAIAddress, schemeAnthropic: anthropicAddress}[scheme]
	}
	entries := entriesAt(at)
	for _, e := range entries {
		if e.id == name {
			return rateOf(e)
		}
	}
	if e, ok := snapshot(entries, name); ok {
		return rateOf(e)
	}
	return Rate{}
}

// reDate matches the date at the end of a model's name.
var reDate = lazyregexp.New(`-(20\d{6}|20\d\d-\d\d-\d\d|latest)$`)

// otherPrice are the snapshots whose price is not that of the name without a
// date.
const otherPrice = "gpt-4o-2024-05-13"

// snapshot finds a model whose name differs in its date only: providers sell
// the snapshots of a model at one price. When several snapshots fit, their
// prices have to agree.
func snapshot(entries []entry, name string) (found entry, ok bool) {
	if name == otherPrice {
		return found, false
	}
	plain := reDate().ReplaceAllString(name, "")
	for _, e := range entries {
		if reDate().ReplaceAllString(e.id, "") != plain {
			continue
		}
		if ok && (e.in != found.in || e.out != found.out) {
			return found, false
		}
		found, ok = e, true
	}
	return found, ok
}

// rateOf reads an entry of the table. The names of its cached prices mislead:
// "in cached" is what writing to the cache costs, "out cached" what reading
// from it does. In some entries the read price is in the field of the
// write price, which a write price below that of plain input gives away. A
// price that is missing there is that of plain input: too much is safe, nothing
// is not. An entry without any price is for a subscription, or unknown.
func rateOf(e entry) Rate {
	r := Rate{
		Input: e.in, Output: e.out, CacheRead: e.in, CacheWrite: e.in, Window: e.window, MaxOutput: e.maxOutput,
		Source: fmt.Sprintf("built-in table of %s", TableDate),
	}
	r.Known = r.Input > 0 || r.Output > 0 || strings.HasSuffix(e.id, ":free")
	read, write := e.outCached, e.inCached
	if read <= 0 && write < r.Input {
		read = write
	}
	if read > 0 && read < r.Input {
		r.CacheRead = read
	}
	if write > r.Input {
		r.CacheWrite = write
	}
	return r
}
