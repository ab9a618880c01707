package reinforce

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/limitedtemplate"
	"github.com/perdure/perdure/loop/hook"
)

//go:embed templates/*.tmpl
var builtIn embed.FS

// Limits of reminders, in tokens.
const (
	MaxMinimal    = 50
	MaxStandard   = 150
	MaxAggressive = 300
	// MaxExit is the limit of the honest exit, which is part of each reminder.
	MaxExit = 40
	// MaxSession is the limit of all reminders of one session.
	MaxSession = 500
)

// bytesPerToken is a low estimate, so that a text of names and paths keeps the limits,
// too.
const bytesPerToken = 3

// Tokens estimates the number of tokens of a text, rounded up.
func Tokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// Most returns the limit of a level, in tokens.
func Most(l hook.Level) int {
	return map[hook.Level]int{hook.LevelMinimal: MaxMinimal, hook.LevelStandard: MaxStandard,
		hook.LevelAggressive: MaxAggressive, hook.LevelAdaptive: MaxAggressive}[l]
}

// Failing is a check that fails.
type Failing struct{ Name, File string }

// About is the data of a reminder, passed to the templates.
type About struct {
	Iteration int
	// Failing are the checks that fail, Worse descriptions of regressions.
	Failing []Failing
	Worse   []string
	// Error is the last error, ErrorKind its kind and Place where it happened; they may be
	// empty. Repeated is how many times in a row it occurred.
	Error, ErrorKind, Place string
	Repeated                int
	// Plateau and Declining are the trend of the quality.
	Plateau, Declining bool
}

// Templates are templates of reminders.
type Templates struct{ set *limitedtemplate.Set }

// LoadTemplates reads the templates minimal, standard, aggressive and exit (each
// NAME.md.tmpl, a text/template for an [About]) from a folder; a missing one, and all of
// them if dir is nil, is the built-in one. exit is the honest exit: it ends each reminder
// and is never cut, so it has at most [MaxExit] tokens. It is an error if the folder does
// not exist or has none of the four, or if a template exceeds the limits of
// [limitedtemplate] or fails with empty or with full data; the error names the file.
func LoadTemplates(ctx context.Context, dir fs.FS) (Templates, error) {
	t := Templates{limitedtemplate.New(nil)}
	var errs []error
	own := 0
	for _, name := range []string{"minimal", "standard", "aggressive", "exit"} {
		file := name + ".md.tmpl"
		text, isOwn, err := readText(dir, file)
		if isOwn {
			own++
		}
		if err == nil {
			err = t.add(ctx, name, text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("read template %s: %w", file, err))
		}
	}
	if dir != nil && own == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("read templates: the folder has none of minimal.md.tmpl, standard.md.tmpl, "+
			"aggressive.md.tmpl and exit.md.tmpl"))
	}
	return t, errors.Join(errs...)
}

// readText returns a template, and whether it is the user's.
func readText(dir fs.FS, file string) (text string, own bool, err error) {
	if dir != nil {
		f, err := dir.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return builtInText(file)
		}
		if err != nil {
			return "", true, err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, limitedtemplate.MaxSource+1)) // one more byte is an error
		return string(data), true, err
	}
	return builtInText(file)
}

func builtInText(file string) (text string, own bool, err error) {
	data, err := builtIn.ReadFile("templates/" + file)
	return string(data), false, err
}

// everything returns data with all fields set, to test templates.
func everything() *About {
	return &About{
		Iteration: 2, Failing: []Failing{{"TestA", "a_test.go"}, {"TestB", "b_test.go"}}, Worse: []string{"1 test removed"},
		Error: "broken", ErrorKind: "build", Place: "a.go:1", Repeated: 2, Plateau: true, Declining: true,
	}
}

// add parses a template and checks that it works with empty and with full data.
func (t Templates) add(ctx context.Context, name, text string) error {
	if err := t.set.Add(name, text); err != nil {
		return err
	}
	for _, about := range []*About{{}, everything()} {
		written, err := t.write(ctx, name, about)
		if err != nil {
			return err
		}
		if n := Tokens(written); name == "exit" && n > MaxExit {
			return fmt.Errorf("%d tokens, limit %d", n, MaxExit)
		}
	}
	return nil
}

// Text returns the reminder of a level, limited to the tokens of the level and to left.
// Lists are shortened until it fits. It is empty if the level is off or there is no room
// for the honest exit.
func (t Templates) Text(ctx context.Context, level hook.Level, about *About, left int) (string, error) {
	room := min(Most(level), left) * bytesPerToken
	name := map[hook.Level]string{hook.LevelMinimal: "minimal", hook.LevelStandard: "standard",
		hook.LevelAggressive: "aggressive",
		hook.LevelAdaptive:   "aggressive"}[level]
	exit, err := t.write(ctx, "exit", about)
	if err != nil || name == "" || len(exit) > room {
		return "", err
	}
	room -= len(exit) + 1
	a := *about
	for {
		text, err := t.write(ctx, name, &a)
		if err != nil {
			return "", err
		}
		if len(text) <= room {
			return strings.TrimSpace(text + "\n" + exit), nil
		}
		if !a.shorten() {
			return strings.TrimSpace(clip.Bytes(text, room) + "\n" + exit), nil
		}
	}
}

// maxName is the length in bytes to which names are cut when a reminder is too long.
const maxName = 60

// shorten removes one part; false if none is left.
func (a *About) shorten() bool {
	switch {
	case len(a.Worse) > 1:
		a.Worse = a.Worse[:len(a.Worse)-1]
	case len(a.Failing) > 1:
		a.Failing = a.Failing[:len(a.Failing)-1]
	case len(a.Error) > maxName:
		a.Error = clip.Bytes(a.Error, maxName)
	case len(a.Worse) == 1 && len(a.Worse[0]) > maxName:
		a.Worse = []string{clip.Bytes(a.Worse[0], maxName)}
	case len(a.Failing) == 1 && len(a.Failing[0].Name) > maxName:
		a.Failing = []Failing{{clip.Bytes(a.Failing[0].Name, maxName), a.Failing[0].File}}
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

func (t Templates) write(ctx context.Context, name string, about *About) (string, error) {
	text, err := t.set.Execute(ctx, name, about)
	if err != nil {
		return "", fmt.Errorf("write reminder: %w", err)
	}
	return strings.TrimSpace(text), nil
}
