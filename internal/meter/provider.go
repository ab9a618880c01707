package meter

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/perdure/perdure/model"
)

// Provider is a provider of models whose requests the meter passes on.
type Provider string

// The providers.
const (
	OpenAI    Provider = "openai"
	Anthropic Provider = "anthropic"
	Gemini    Provider = "gemini"
)

// Providers returns all providers.
func Providers() []Provider { return []Provider{OpenAI, Anthropic, Gemini} }

// defaultUpstream returns the address of the provider's own service, in the form of its
// variable.
func (p Provider) defaultUpstream() string {
	switch p {
	case OpenAI:
		return "https://api.openai.com/v1"
	case Anthropic:
		return "https://api.anthropic.com"
	case Gemini:
		return "https://generativelanguage.googleapis.com"
	}
	return ""
}

// variables returns the environment variables that hold the address of the provider, the
// most common one first.
func (p Provider) variables() []string {
	switch p {
	case OpenAI:
		return []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"}
	case Anthropic:
		return []string{"ANTHROPIC_BASE_URL"}
	case Gemini:
		return []string{"GOOGLE_GEMINI_BASE_URL"}
	}
	return nil
}

// asked returns the provider whose protocol a request has; that of the address if it has none.
func (p Provider) asked(api API) Provider {
	switch {
	case slices.Contains(Providers(), p):
		return p
	case api == Messages:
		return Anthropic
	case api == Generate:
		return Gemini
	}
	return OpenAI
}

// priced returns the name and the address under which the price table has a model.
func (p Provider) priced(model, upstream string) (name, baseURL string) {
	if p == Gemini && upstream == p.defaultUpstream() {
		return "openai:" + model, upstream + "/v1beta/openai"
	}
	return string(p) + ":" + model, upstream
}

// Upstreams returns the addresses of the providers: the given ones, those of the
// variables in environ, else those of the providers' own services. Given addresses have
// the form of the variables; they can be those of further providers. The error names the
// address that is wrong.
func Upstreams(environ []string, given map[Provider]string) (map[Provider]string, error) {
	all := make(map[Provider]string)
	for p := range given {
		all[p] = ""
	}
	for _, p := range Providers() {
		all[p] = ""
	}
	for p := range all {
		all[p] = given[p]
		for _, name := range p.variables() {
			all[p] = cmp.Or(all[p], lookup(environ, name))
		}
		all[p] = strings.TrimRight(cmp.Or(all[p], p.defaultUpstream()), "/")
		if _, err := parseUpstream(all[p]); err != nil {
			return nil, fmt.Errorf("address of %s: %w", p, err)
		}
	}
	return all, nil
}

// ParseUpstream splits "PROVIDER=URL".
func ParseUpstream(text string) (Provider, string, error) {
	name, address, ok := strings.Cut(text, "=")
	if !ok || !slices.Contains(Providers(), Provider(name)) {
		return "", "", fmt.Errorf("%q is not PROVIDER=URL with openai, anthropic or gemini as the provider",
			model.Redact(text))
	}
	_, err := parseUpstream(address)
	return Provider(name), address, err
}

func parseUpstream(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, model.RedactError(err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%q is not an http or https URL", model.Redact(address))
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("the URL of %q has a user, a query or a fragment", u.Host)
	}
	return u, nil
}

// lookup returns the value of a variable, the last one of its name.
func lookup(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// Dialect is how an agent reads the variables with the addresses of providers.
type Dialect string

// The dialects.
const (
	// Common: ANTHROPIC_BASE_URL does not contain the version of the protocol.
	Common Dialect = ""
	// AISDK: ANTHROPIC_BASE_URL ends in /v1, as programs on Vercel's AI SDK expect.
	AISDK Dialect = "ai-sdk"
)

// DialectOf returns the dialect of an agent by the name of its program or preset.
func DialectOf(name string) Dialect {
	if name == "opencode" {
		return AISDK
	}
	return Common
}

// Variables returns the variables, "NAME=value", with which a program sends its requests
// to the meter. environ is its environment: if that names a proxy, the meter's address is
// added to the exceptions.
func (m *Meter) Variables(d Dialect, environ []string) []string {
	var set []string
	for _, p := range Providers() {
		address := m.URL(p)
		if p == Anthropic && d == AISDK && m.upstreams[p].String() == p.defaultUpstream() {
			address += "/v1"
		}
		for _, name := range p.variables() {
			set = append(set, name+"="+address)
		}
	}
	return append(set, m.Direct(environ)...)
}

// Direct returns the variables with which a program that uses a proxy asks the meter without it; nil
// if environ names no proxy.
func (m *Meter) Direct(environ []string) []string {
	proxies := []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"}
	if !slices.ContainsFunc(proxies, func(name string) bool { return lookup(environ, name) != "" }) {
		return nil
	}
	var set []string
	host, _, _ := strings.Cut(m.host, ":")
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		except := cmp.Or(lookup(environ, name), lookup(environ, "NO_PROXY"), lookup(environ, "no_proxy"))
		set = append(set, name+"="+strings.Trim(except+","+host, ","))
	}
	return set
}
