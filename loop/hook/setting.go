package hook

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"
)

// SettingsKey is the section of the configuration that [Settings] are.
const SettingsKey = "loop.hooks"

// MaxTimeout is the longest time-out that can be configured, except none.
const MaxTimeout = 24 * time.Hour

// Setting is an entry of the section loop.hooks: one handler of the user.
type Setting struct {
	// Hook is the hook's name. Required.
	Hook Name `yaml:"hook"`
	// Name is what the log and reports call the handler. Empty: its place in the
	// list, for example "hooks[0]".
	Name string `yaml:"name"`
	// Command is a command line for the shell; URL is an address to post to. One
	// of the two is required.
	Command string `yaml:"command"`
	URL     string `yaml:"url"`
	// Timeout ends an invocation. 0: the hook's own; negative: none.
	Timeout time.Duration `yaml:"timeout"`
	// OnFault is continue or block. Empty: the hook's own policy.
	OnFault OnFault `yaml:"on_fault"`
}

// Settings are the section loop.hooks, in the order in which handlers are
// asked.
type Settings []Setting

// Validate returns all errors at once, each with its key, for example
// loop.hooks[2].url. It does not repeat commands and addresses, which may contain
// secrets, and does not check whether programs and servers exist.
func (s Settings) Validate() error {
	var errs []error
	names := make(map[[2]string]int)
	for i, one := range s {
		key := fmt.Sprintf("%s[%d]", SettingsKey, i)
		for _, err := range one.faults(i) {
			errs = append(errs, fmt.Errorf("%s.%w", key, err))
		}
		place := [2]string{string(one.Hook), one.name(i)}
		if before, twice := names[place]; twice {
			errs = append(errs, fmt.Errorf("%s.name: is that of %s[%d] too, at the same hook", key, SettingsKey, before))
		}
		names[place] = i
	}
	return errors.Join(errs...)
}

// faults are what is wrong with one setting; each text begins with the key.
func (s Setting) faults(i int) []error {
	var errs []error
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if !s.Hook.known() {
		add(unknownHook("hook", s.Hook))
	}
	add(checkName("name", s.name(i)))
	add(checkOnFault("on_fault", s.OnFault))
	if s.Timeout > MaxTimeout {
		add(fmt.Errorf("timeout: is %s, the longest is %s; a negative one is none", s.Timeout, MaxTimeout))
	}
	switch {
	case s.Command == "" && s.URL == "":
		add(errors.New("command: is missing, and no url is set"))
	case s.Command != "" && s.URL != "":
		add(errors.New("url: there is a command too; a handler has one of them"))
	case s.Command != "":
		add(CommandConfig{Shell: s.Command}.validate())
	default:
		_, err := parseAddress(s.URL)
		add(err)
	}
	return errs
}

func (s Setting) name(i int) string { return cmp.Or(s.Name, fmt.Sprintf("hooks[%d]", i)) }

// Place is where the programs of [Settings] run; see [CommandConfig].
type Place struct {
	Dir  string
	Env  []string
	Hold []*os.File
}

// Handlers checks the settings as Validate does and makes the handlers.
func (s Settings) Handlers(place Place) ([]Registration, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	regs := make([]Registration, 0, len(s))
	for i, one := range s {
		h, err := one.handler(place)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", SettingsKey, i, err)
		}
		regs = append(regs, Registration{Hook: one.Hook, Name: one.name(i), Handler: h, Timeout: one.Timeout,
			OnFault: one.OnFault})
	}
	return regs, nil
}

func (s Setting) handler(place Place) (Handler, error) {
	if s.URL != "" {
		return NewEndpoint(EndpointConfig{URL: s.URL})
	}
	return NewCommand(CommandConfig{Shell: s.Command, Dir: place.Dir, Env: place.Env, Hold: place.Hold})
}
