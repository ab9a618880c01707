package price

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// The built-in table: its version and the day it is from. A test holds the
// version against go.mod, so that whoever takes a newer table writes its date.
const (
	TableVersion = "v0.51.0"
	TableDate    = "2026-07-23"
)

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

// Table finds rates. It reads the user's file and the built-in table when they
// are first asked for, each once. It is safe for concurrent use.
type Table struct {
	user    func() (*overrides, error)
	builtin func() catalogue
}

// New returns a table that has read nothing yet.
func New(cfg Config) *Table {
	return &Table{
		user:    sync.OnceValues(func() (*overrides, error) { return readFile(cfg) }),
		builtin: sync.OnceValue(readCatalogue),
	}
}

// Rate returns what is known of the model of this name ("openai:gpt-4o",
// "exec:ollama run llama3") at an endpoint, whose base URL is empty for the
// provider's own. What is not known is not an error. The error, of the user's
// file, is an *Error that names line and field.
//
// Prices are those of an endpoint: a model of the same name behind another
// address, such as a server on this machine, has another price, which is
// unknown unless the user's file tells it.
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
		rate = t.builtin().find(scheme, model, baseURL)
	}
	if o := user.find(name); o != nil {
		rate = o.over(rate)
	}
	return rate, nil
}

// catalogue is the built-in table: the models of the providers by where these
// are asked.
type catalogue map[string]map[string]catwalk.Model

// The addresses of the providers whose entries name none.
const (
	openAIAddress    = "api.openai.com"
	anthropicAddress = "api.anthropic.com"
)

func readCatalogue() catalogue {
	c := make(catalogue)
	for _, p := range embedded.GetAll() {
		at := address(p.APIEndpoint)
		switch p.ID { //nolint:exhaustive // the others have addresses, or cannot be asked
		case catwalk.InferenceProviderOpenAI:
			at = openAIAddress
		case catwalk.InferenceProviderAnthropic:
			at = anthropicAddress
		}
		if at == "" || c[at] != nil {
			continue
		}
		models := make(map[string]catwalk.Model, len(p.Models))
		for _, m := range p.Models {
			models[m.ID] = m
		}
		c[at] = models
	}
	return c
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

// find returns the rate of a model at an address.
func (c catalogue) find(scheme, name, baseURL string) Rate {
	at := address(baseURL)
	if baseURL == "" {
		at = map[string]string{schemeOpenAI: openAIAddress, schemeAnthropic: anthropicAddress}[scheme]
	}
	models := c[at]
	m, ok := models[name]
	if !ok {
		m, ok = snapshot(models, name)
	}
	if !ok {
		return Rate{}
	}
	return rateOf(m)
}

// reDate matches the date at the end of a model's name.
var reDate = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-(20\d{6}|20\d\d-\d\d-\d\d|latest)$`)
})

// otherPrice are the snapshots whose price is not that of the name without a
// date.
const otherPrice = "gpt-4o-2024-05-13"

// snapshot finds a model whose name differs in its date only: providers sell
// the snapshots of a model at one price. When several snapshots fit, their
// prices have to agree.
func snapshot(models map[string]catwalk.Model, name string) (found catwalk.Model, ok bool) {
	if name == otherPrice {
		return found, false
	}
	plain := reDate().ReplaceAllString(name, "")
	for id, m := range models {
		if reDate().ReplaceAllString(id, "") != plain {
			continue
		}
		if ok && (m.CostPer1MIn != found.CostPer1MIn || m.CostPer1MOut != found.CostPer1MOut) {
			return found, false
		}
		found, ok = m, true
	}
	return found, ok
}

// rateOf reads an entry of the table. The names of its cached prices mislead:
// "in cached" is what writing to the cache costs, "out cached" what reading
// from it does. In some entries the read price stands in the place of the
// write price, which a write price below that of plain input gives away. A
// price that is missing there is that of plain input: too much is safe, nothing
// is not. An entry without any price is for a subscription, or nobody knows.
func rateOf(m catwalk.Model) Rate {
	r := Rate{
		Input: m.CostPer1MIn, Output: m.CostPer1MOut, CacheRead: m.CostPer1MIn, CacheWrite: m.CostPer1MIn,
		Window: int(m.ContextWindow), MaxOutput: int(m.DefaultMaxTokens),
		Source: fmt.Sprintf("built-in table of %s", TableDate),
	}
	r.Known = r.Input > 0 || r.Output > 0 || strings.HasSuffix(m.ID, ":free")
	read, write := m.CostPer1MOutCached, m.CostPer1MInCached
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
