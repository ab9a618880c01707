// Package walk turns what a user gives as context (files, folders, globs and
// standard input) into a sequence of named texts.
//
// A name that stands on the command line is meant: when it is missing, not text,
// empty or unreadable, that is an error. What is found by walking a folder is
// taken when it is text and otherwise listed as skipped, with the reason. The
// same file reached twice is taken once, under the name it was reached by first.
//
// A file that is written to while it is read is taken as it was at one time: as
// long as it was when it was opened, and read again when what was read does not
// hold any more. One that never holds still is an error or is left out.
//
// # What is left out of folders
//
// Nothing below a folder called .git or .perdure is taken. What .gitignore files
// (and .git/info/exclude) say is left out of folders and listed as skipped. For a
// glob they hide only whole folders: who writes logs/*.log wants the logs, who
// writes **/*.js does not want node_modules. A folder or file that is named itself
// is taken even when it is ignored. The rules are read here, on top of the glob
// library, rather than by asking git: the outcome is the same with and without
// git installed, each skipped file can say which line left it out, and no setting
// of a repository one merely reads can start a program. Unlike git, a file that is
// tracked although it is ignored is left out, and says so.
package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// stdinArg stands for standard input, also as the name of its text.
const stdinArg = "-"

// Config says what to gather.
type Config struct {
	// Root is the folder that relative names start from. Required.
	Root string
	// Args are files, folders, globs or "-" for Stdin, as the user gave them. At
	// least one is required.
	Args []string
	// Stdin is read for "-". Defaults to none, which makes "-" an error.
	Stdin io.Reader
	// MaxFileBytes is the size of the largest file taken. Defaults to no limit.
	MaxFileBytes int64
}

func (c Config) validate() error {
	var errs []error
	if c.Root == "" {
		errs = append(errs, errors.New("gather config: Root is empty"))
	}
	if len(c.Args) == 0 {
		errs = append(errs, errors.New("gather config: Args is empty"))
	}
	if c.MaxFileBytes < 0 {
		errs = append(errs, errors.New("gather config: MaxFileBytes is negative"))
	}
	return errors.Join(errs...)
}

// Kinds of reasons to leave a file out.
const (
	KindIgnored    = "ignored"    // by a .gitignore or exclude file
	KindBinary     = "binary"     // not text in UTF-8
	KindEmpty      = "empty"      // nothing in it
	KindTooLarge   = "too_large"  // larger than MaxFileBytes
	KindUnreadable = "unreadable" // the system refuses
	KindLink       = "link"       // a symbolic link to nothing, to outside, or in a circle
	KindSpecial    = "special"    // a pipe, a socket, a device
	KindGone       = "gone"       // removed meanwhile
	KindChanged    = "changed"    // written to while it was read, again and again
	KindName       = "name"       // a name that is not plain text
)

// Sink receives what is gathered. pack.Builder and pack.StreamWriter are sinks.
type Sink interface {
	// Add takes a text under its name. It reads r to its end and returns r's
	// error when r fails; after that the sink goes on without the text. Any other
	// error of it ends the gathering.
	Add(name string, r io.Reader) error
	// Skip is told of each file that is left out, and why: in one of the words
	// KindIgnored to KindName, and for people.
	Skip(file, kind, why string)
}

// Summary counts what was gathered.
type Summary struct {
	Files   int
	Bytes   int64
	Skipped int
}

// Error is about one thing the user gave.
type Error struct {
	// Arg is what the user gave.
	Arg string
	// Msg says what is wrong with it.
	Msg string
	// Hint says what can be done; may be empty.
	Hint string
	// Err is the cause; may be nil.
	Err error
}

// Error implements error. The hint is not part of it.
func (e *Error) Error() string {
	text := fmt.Sprintf("read context %q: %s", e.Arg, e.Msg)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Into reads everything cfg names, once, into sink: in the order of the
// arguments, folders and globs in the order of names, links last. Memory use does
// not grow with the files.
//
// What is wrong with the arguments is found before anything is read, and all at
// once: the error then joins an [*Error] for each. Also an [*Error]: nothing at
// all was found to read. After an error the sink's content is not complete and is
// to be discarded.
func Into(ctx context.Context, cfg Config, sink Sink) (Summary, error) {
	if err := cfg.validate(); err != nil {
		return Summary{}, err
	}
	root, err := filepath.Abs(cfg.Root)
	if err != nil {
		return Summary{}, fmt.Errorf("gather config: Root: %w", err)
	}
	cfg.Root = root
	targets, err := resolve(cfg)
	if err != nil {
		return Summary{}, err
	}
	g := &gatherer{ctx: ctx, cfg: cfg, sink: sink, taken: map[fileID]struct{}{}}
	for _, t := range targets {
		if err := g.target(t); err != nil {
			return g.sum, err
		}
	}
	if g.sum.Files == 0 {
		return g.sum, g.nothing()
	}
	return g.sum, nil
}

// gatherer is the state of one Into.
type gatherer struct {
	ctx     context.Context // the caller's, for the length of Into
	cfg     Config
	sink    Sink
	taken   map[fileID]struct{}
	sum     Summary
	example string // a skipped file and why
}

type kind int

const (
	kindStdin kind = iota
	kindFile
	kindFolder
	kindGlob
)

// target is an argument that was looked at.
type target struct {
	arg  string
	kind kind
	// path is the file or the folder to walk.
	path string
	// prefix is what the names of files found in the folder start with.
	prefix string
	// pattern is the part of a glob below path.
	pattern string
}

func resolve(cfg Config) ([]target, error) {
	var targets []target
	var errs []error
	stdin := false
	for _, arg := range cfg.Args {
		t, err := resolveArg(cfg, arg)
		if err == nil && t.kind == kindStdin && stdin {
			err = &Error{Arg: arg, Msg: "standard input is given twice", Hint: "it can be read only once"}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		stdin = stdin || t.kind == kindStdin
		targets = append(targets, t)
	}
	return targets, errors.Join(errs...)
}

func resolveArg(cfg Config, arg string) (target, error) {
	t := target{arg: arg}
	switch {
	case arg == "":
		return t, &Error{Arg: arg, Msg: "the name is empty",
			Hint: "name a file, a folder or a pattern, or give - for standard input"}
	case arg == stdinArg && cfg.Stdin == nil:
		return t, &Error{Arg: arg, Msg: "there is no standard input", Hint: "name a file, a folder or a pattern"}
	case arg == stdinArg:
		return t, nil
	}
	t.path = inRoot(cfg.Root, arg)
	info, err := os.Stat(t.path)
	switch {
	case err == nil && info.IsDir():
		t.kind = kindFolder
		t.prefix = folderPrefix(arg)
		return t, nil
	case err == nil && info.Mode().IsRegular():
		t.kind = kindFile
		return t, nil
	case err == nil:
		return t, &Error{
			Arg: arg, Msg: "it is " + modeWord(info.Mode()) + ", not a file or folder",
			Hint: "pipe the text to standard input and give -",
		}
	case hasMeta(arg):
		return resolveGlob(cfg, arg)
	case errors.Is(err, fs.ErrNotExist):
		return t, &Error{Arg: arg, Msg: "no such file or folder", Hint: "relative names start from " + cfg.Root,
			Err: fs.ErrNotExist}
	default:
		return t, &Error{Arg: arg, Msg: "it cannot be looked at", Hint: hintAccess, Err: err}
	}
}

func resolveGlob(cfg Config, arg string) (target, error) {
	slashed := filepath.ToSlash(arg)
	if !doublestar.ValidatePattern(slashed) {
		return target{}, &Error{Arg: arg, Msg: "the pattern is malformed", Hint: "brackets and braces have to be closed",
			Err: doublestar.ErrBadPattern}
	}
	folder, pattern := doublestar.SplitPattern(slashed)
	t := target{arg: arg, kind: kindGlob, path: inRoot(cfg.Root, filepath.FromSlash(folder)), pattern: pattern}
	if folder != "." || strings.HasPrefix(slashed, "./") {
		t.prefix = strings.TrimSuffix(folder, "/") + "/"
	}
	info, err := os.Stat(t.path)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return t, &Error{Arg: arg, Msg: fmt.Sprintf("the folder %q cannot be searched", folder), Hint: hintAccess, Err: err}
	}
	return t, nil
}

func inRoot(root, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(root, name)
}

// folderPrefix keeps the folder's name as the user wrote it; the names below
// "." carry none.
func folderPrefix(arg string) string {
	trimmed := strings.TrimRight(filepath.ToSlash(arg), "/")
	if trimmed == "." {
		return ""
	}
	return trimmed + "/"
}

func hasMeta(arg string) bool { return strings.ContainsAny(arg, "*?[{") }

func modeWord(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "a special file"
	}
}

// target reads one argument.
func (g *gatherer) target(t target) error {
	switch t.kind {
	case kindStdin:
		return g.stdin()
	case kindFile:
		return g.take(candidate{name: t.arg, path: t.path, given: true})
	default:
		return g.walk(t)
	}
}

// nothing is the error when no argument gave a file.
func (g *gatherer) nothing() error {
	e := &Error{Arg: strings.Join(g.cfg.Args, " "), Msg: "no text was found there",
		Hint: "name a file, a folder or a pattern that holds text"}
	if g.sum.Skipped > 0 {
		e.Msg += fmt.Sprintf("; %d left out, for example %s", g.sum.Skipped, g.example)
		e.Hint = "a file that is named itself is taken even when it is ignored"
	}
	return e
}

func (g *gatherer) skip(name, kind, why string) {
	g.sum.Skipped++
	g.example = cmp.Or(g.example, fmt.Sprintf("%q (%s)", name, why))
	g.sink.Skip(name, kind, why)
}
