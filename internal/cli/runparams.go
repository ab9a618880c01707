package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/rlm"
)

// paramFlags holds the flags on further parameters and headers of requests.
type paramFlags struct{ params, headers []string }

func (p *paramFlags) register(fl *pflag.FlagSet) {
	fl.StringArrayVar(&p.params, "param", nil, "`NAME=JSON` further parameter of each model request, such as top_p=0.9 "+
		"or reasoning_effort=low; repeatable")
	fl.StringArrayVar(&p.headers, "header", nil, "`'NAME: VALUE'` further header of each model request; $VARIABLE is "+
		"replaced, and no value is stored; repeatable")
}

// apply sets the parameters and headers of the settings and the flags.
func (p *paramFlags) apply(a *app, l *config.Loaded, c *rlm.Config) error {
	return p.add(a, c, objectOf(l.Params), objectOf(l.Headers))
}

// addTo sets the parameters and headers of the flags.
func (p *paramFlags) addTo(a *app, c *rlm.Config) error {
	return p.add(a, c, make(map[string]json.RawMessage), make(map[string]json.RawMessage))
}

// add sets parameters and headers together with those of the flags.
func (p *paramFlags) add(a *app, c *rlm.Config, params, headers map[string]json.RawMessage) error {
	for _, text := range p.params {
		name, value, ok := strings.Cut(text, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return env.UsageError("write for example --param top_p=0.9", "--param: %q is not NAME=JSON", text)
		}
		params[name] = paramValue(value)
	}
	for _, text := range p.headers {
		name, value, ok := strings.Cut(text, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || value == "" {
			return env.UsageError("write for example --header 'X-Team: $TEAM'", "--header: it is not 'NAME: VALUE'")
		}
		if !strings.Contains(value, "$") { // the tree has the name of a variable, and this process its value
			variable := headerVariable(name)
			a.Environ = append(a.Environ, variable+"="+value)
			value = "$" + variable
		}
		headers[name] = paramValue(quotedText(value))
	}
	var err error
	if c.Params, err = rlm.MakeFields(params); err != nil {
		return fmt.Errorf("encode parameters: %w", err)
	}
	if c.Headers, err = rlm.MakeFields(headers); err != nil {
		return fmt.Errorf("encode headers: %w", err)
	}
	return nil
}

// headerVariable returns the environment variable for the value of a header that was given as it is.
func headerVariable(name string) string {
	return "HEADER_" + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}

// paramValue returns a value as JSON: what is no JSON is text.
func paramValue(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return json.RawMessage(quotedText(text))
}

func quotedText(text string) string {
	raw, _ := json.Marshal(text) // text can always be encoded
	return string(raw)
}

// objectOf reads an object from the settings, which have checked it.
func objectOf(text string) map[string]json.RawMessage {
	object := make(map[string]json.RawMessage)
	_ = json.Unmarshal([]byte(text), &object)
	return object
}
