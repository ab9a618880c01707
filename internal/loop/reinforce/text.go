package reinforce

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/perdure/perdure/loop/hook"
)

//go:embed texts/*.tmpl
var texts embed.FS

// Limits of reminders, in tokens.
const (
	MaxMinimal    = 50
	MaxStandard   = 150
	MaxAggressive = 300
	// MaxExit is for the honest way out, which is part of each.
	MaxExit = 40
	// MaxSession is for all that an agent is reminded of in one session.
	MaxSession = 500
)

// bytesPerToken is a low estimate, so that a text of names and paths keeps the
// limits, too.
const bytesPerToken = 3

// Tokens estimates how many tokens a text has, rather too many than too few.
func Tokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// Most is the limit of a level, in tokens.
func Most(l hook.Level) int {
	switch l {
	case hook.LevelMinimal:
		return MaxMinimal
	case hook.LevelStandard:
		return MaxStandard
	case hook.LevelAggressive, hook.LevelAdaptive:
		return MaxAggressive
	case hook.LevelOff:
	}
	return 0
}

// Failing is a check that fails.
type Failing struct{ Name, File string }

// About is what a reminder is about: what templates are given.
type About struct {
	Iteration int
	// Failing are the checks that fail, Worse what an iteration made worse, in
	// words.
	Failing []Failing
	Worse   []string
	// Error is the last error, ErrorKind its kind and Place where it happened; they
	// may be empty. Repeated is how often it came in a row.
	Error, ErrorKind, Place string
	Repeated                int
	// Plateau and Declining are the trend of the quality.
	Plateau, Declining bool
}

// Texts are templates of reminders.
type Texts struct{ set *template.Template }

// LoadTexts reads the templates minimal, standard, aggressive and exit (each
// NAME.md.tmpl, a text/template for an [About]) from a folder; those that it does
// not have, and all of them when dir is nil, are the built-in ones. exit is the
// honest way out: it stands at the end of each reminder and is never cut, so that
// it may be at most [MaxExit] tokens long. A folder that is not there or has none of
// the four, and a template that fails with nothing or with everything to tell, is
// an error; it names the file.
func LoadTexts(dir fs.FS) (Texts, error) {
	t := Texts{template.New("")}
	var errs []error
	own := 0
	for _, name := range []string{"minimal", "standard", "aggressive", "exit"} {
		file := name + ".md.tmpl"
		text, isOwn, err := readText(dir, file)
		if isOwn {
			own++
		}
		if err == nil {
			err = t.add(name, text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read template %s: %w", file, err))
		}
	}
	if dir != nil && own == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("there is none of minimal.md.tmpl, standard.md.tmpl, aggressive.md.tmpl, "+
			"exit.md.tmpl"))
	}
	return t, errors.Join(errs...)
}

// readText is a template, and whether it is the user's.
func readText(dir fs.FS, file string) (text string, own bool, err error) {
	if dir != nil {
		data, err := fs.ReadFile(dir, file)
		if !errors.Is(err, fs.ErrNotExist) {
			return string(data), true, err
		}
	}
	data, err := texts.ReadFile("texts/" + file)
	return string(data), false, err
}

// everything says something in each field: what a template is tried with.
func everything() *About {
	return &About{
		Iteration: 2, Failing: []Failing{{"TestA", "a_test.go"}, {"TestB", "b_test.go"}}, Worse: []string{"1 test gone"},
		Error: "broken", ErrorKind: "build", Place: "a.go:1", Repeated: 2, Plateau: true, Declining: true,
	}
}

// add takes a template that can be written whatever there is to tell.
func (t Texts) add(name, text string) error {
	if _, err := t.set.New(name).Parse(text); err != nil {
		return err
	}
	for _, about := range []*About{{}, everything()} {
		written, err := t.write(name, about)
		if err != nil {
			return err
		}
		if n := Tokens(written); name == "exit" && n > MaxExit {
			return fmt.Errorf("it is %d tokens long, and may be %d", n, MaxExit)
		}
	}
	return nil
}

// Text writes the reminder of a level, of at most so many tokens as the level, and
// left, allow. Lists are shortened until it fits. It is empty where there is
// nothing to say, or no room for the honest way out.
func (t Texts) Text(level hook.Level, about *About, left int) (string, error) {
	room := min(Most(level), left) * bytesPerToken
	name := map[hook.Level]string{hook.LevelMinimal: "minimal", hook.LevelStandard: "standard",
		hook.LevelAggressive: "aggressive",
		hook.LevelAdaptive:   "aggressive"}[level]
	exit, err := t.write("exit", about)
	if err != nil || name == "" || len(exit) > room {
		return "", err
	}
	room -= len(exit) + 1
	a := *about
	for {
		text, err := t.write(name, &a)
		if err != nil {
			return "", err
		}
		if len(text) <= room {
			return strings.TrimSpace(text + "\n" + exit), nil
		}
		if !a.shorten() {
			return strings.TrimSpace(clip(text, room) + "\n" + exit), nil
		}
	}
}

// maxName is how long names are left when a reminder has to be shortened, in
// bytes.
const maxName = 60

// shorten takes something out; false when there is nothing left to take.
func (a *About) shorten() bool {
	switch {
	case len(a.Worse) > 1:
		a.Worse = a.Worse[:len(a.Worse)-1]
	case len(a.Failing) > 1:
		a.Failing = a.Failing[:len(a.Failing)-1]
	case len(a.Error) > maxName:
		a.Error = clip(a.Error, maxName)
	case len(a.Worse) == 1 && len(a.Worse[0]) > maxName:
		a.Worse = []string{clip(a.Worse[0], maxName)}
	case len(a.Failing) == 1 && len(a.Failing[0].Name) > maxName:
		a.Failing = []Failing{{clip(a.Failing[0].Name, maxName), a.Failing[0].File}}
	case a.Error != "":
		a.Error, a.ErrorKind, a.Place = "", "", ""
	case len(a.Worse) > 0:
		a.Worse = nil
	case len(a.Failing) > 0 && a.Failing[0].File != "":
		a.Failing = []Failing{{Name: a.Failing[0].Name}}
	case len(a.Failing) > 0:
		a.Failing = nil
	default:
		return false
	}
	return true
}

func (t Texts) write(name string, about *About) (string, error) {
	var b strings.Builder
	if err := t.set.ExecuteTemplate(&b, name, about); err != nil {
		return "", fmt.Errorf("write reminder: %w", err)
	}
	return strings.TrimSpace(b.String()), nil
}

// clip shortens a text to a number of bytes, at the end of a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := max(most-len("…"), 0)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	if cut == 0 {
		return ""
	}
	return text[:cut] + "…"
}
