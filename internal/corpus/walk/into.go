// Package walk reads the files, folders, globs and standard input that a user names as
// context, as a sequence of text with names.
//
// A name on the command line must be readable: if it is missing, not text or empty, that
// is an error. Files found in a folder are read if they are text, and are otherwise listed
// as skipped, with the reason. A file reached twice is read once, under the name by which
// it was reached first.
//
// A file that is written to while it is read is read as of one time: at the length that it
// had when it was opened, and again if the content read no longer holds. A file that keeps
// changing is an error, or is skipped.
//
// Text in other encodings is converted to UTF-8, notebooks are read as their cells, and
// commands turn other formats into text. Each such file has a note.
//
// # What is skipped in folders
//
// Nothing below a folder named .git or .perdure is read. Files of keys and passwords, and
// folders of dependencies or build output, are skipped unless they are named. Files that
// .gitignore files (and .git/info/exclude) ignore are skipped. For a glob these rules only
// exclude whole folders: logs/*.log asks for the logs, while **/*.js does not ask for
// node_modules. An ignored file or folder that is named itself is read. The rules are read
// here and not by git: the result is the same with and without git installed, each skipped
// file has the line that excludes it, and no setting of a repository can start a program.
// Unlike in git, a tracked file that a pattern ignores is skipped, too.
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

	"github.com/perdure/perdure/internal/corpus/charset"
	"github.com/perdure/perdure/internal/corpus/preprocess"
)

// stdinArg is the argument for standard input, and the name of its text.
const stdinArg = "-"

// Config configures a walk.
type Config struct {
	// Root is the folder that relative names start from. Required.
	Root string
	// Args are files, folders, globs or "-" for Stdin, as the user entered them. At least
	// one is required.
	Args []string
	// Stdin is read for "-". Nil: "-" is an error.
	Stdin io.Reader
	// MaxFileBytes limits the size of a file. Zero: no limit.
	MaxFileBytes int64
	// Encoding is the encoding of files that are not UTF-8 and have no byte order mark. Nil: it
	// is recognised.
	Encoding *charset.Charset
	// Pre are commands that turn files into text.
	Pre preprocess.Rules
	// NoIgnore also reads what .gitignore files name, and build folders.
	NoIgnore bool
}

func (c Config) validate() error {
	var errs []error
	if c.Root == "" {
		errs = append(errs, errors.New("walk config: Root is empty"))
	}
	if len(c.Args) == 0 {
		errs = append(errs, errors.New("walk config: Args is empty"))
	}
	if c.MaxFileBytes < 0 {
		errs = append(errs, errors.New("walk config: MaxFileBytes is negative"))
	}
	return errors.Join(errs...)
}

// Kinds of reasons to skip a file.
const (
	KindIgnored    = "ignored"    // by a .gitignore or exclude file
	KindBinary     = "binary"     // not text in UTF-8
	KindEmpty      = "empty"      // no content
	KindTooLarge   = "too_large"  // larger than MaxFileBytes
	KindUnreadable = "unreadable" // the system returns an error
	KindLink       = "link"       // a symbolic link that is broken, leads outside or is circular
	KindSpecial    = "special"    // a pipe, a socket, a device
	KindGone       = "gone"       // removed meanwhile
	KindChanged    = "changed"    // written to during every attempt to read it
	KindName       = "name"       // a name with control characters or invalid UTF-8
	KindEncoding   = "encoding"   // text in an encoding that is not certain, or not valid
	KindSecret     = "secret"     // a file of keys or passwords
	KindBuild      = "build"      // a folder of dependencies or build output
	KindCommand    = "command"    // the command that turns it into text failed
)

// Kinds of notes on files that were read.
const (
	NoteConverted = "converted" // the text is not that of the bytes
	NoteSecret    = "secret"    // it has keys or passwords, and was named
	NoteBroken    = "broken"    // its format has an error, and it was read as text
)

// Sink receives the text of each file. pack.Builder and pack.StreamWriter are sinks.
type Sink interface {
	// Add receives a text under its name. It reads r to its end and returns r's error if r
	// fails; after that the sink continues without the text. Any other error ends the walk.
	Add(name string, r io.Reader) error
	// Skip receives the name of each skipped file, the kind of the reason (KindIgnored to
	// KindCommand), and the reason for people.
	Skip(file, kind, why string)
	// Note receives the name of a file that was added, the kind of a note (NoteConverted to
	// NoteBroken), and the note for people.
	Note(file, kind, text string)
}

// Error is the error of one argument.
type Error struct {
	// Arg is the argument.
	Arg string
	// Msg is the problem.
	Msg string
	// Hint is what the user can do; may be empty.
	Hint string
	// Err is the cause; may be nil.
	Err error
}

// Error returns the argument, the problem and the cause, without the hint.
func (e *Error) Error() string {
	text := fmt.Sprintf("read context %q: %s", e.Arg, e.Msg)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Into reads all files that cfg names, once, into sink: in the order of the arguments,
// folders and globs in the order of names, links last. Memory use does not grow with the
// files.
//
// Errors of the arguments are found before anything is read, and joined: an [*Error] for
// each. It is an [*Error], too, if no text was found. After an error the content of the
// sink is not complete and must be discarded.
func Into(ctx context.Context, cfg Config, sink Sink) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	root, err := filepath.Abs(cfg.Root)
	if err != nil {
		return fmt.Errorf("walk config: Root: %w", err)
	}
	cfg.Root = root
	targets, err := resolve(cfg)
	if err != nil {
		return err
	}
	c := &collector{ctx: ctx, cfg: cfg, sink: sink, read: map[fileID]struct{}{}}
	for _, t := range targets {
		if err := c.target(t); err != nil {
			return err
		}
	}
	if c.files == 0 {
		return c.nothing()
	}
	return nil
}

// collector is the state of one Into.
type collector struct {
	ctx     context.Context // the caller's, during Into
	cfg     Config
	sink    Sink
	read    map[fileID]struct{}
	files   int    // files read
	skipped int    // files skipped
	example string // a skipped file and the reason
	head    []byte // buffer of the beginning of a file
}

type kind int

const (
	kindStdin kind = iota
	kindFile
	kindFolder
	kindGlob
)

// target is a resolved argument.
type target struct {
	arg  string
	kind kind
	// path is the file or the folder to walk.
	path string
	// prefix begins the names of files found in the folder.
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
			err = &Error{Arg: arg, Msg: "standard input is named twice", Hint: "name - only once"}
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
			Hint: "name a file, a folder or a pattern, or - for standard input"}
	case arg == stdinArg && cfg.Stdin == nil:
		return t, &Error{Arg: arg, Msg: "standard input is not available", Hint: "name a file, a folder or a pattern"}
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
		return t, &Error{Arg: arg, Msg: "it is " + modeWord(info.Mode()) + ", not a file or folder",
			Hint: "pipe the text to standard input and name -"}
	case strings.ContainsAny(arg, "*?[{"):
		return resolveGlob(cfg, arg)
	case errors.Is(err, fs.ErrNotExist):
		return t, &Error{Arg: arg, Msg: "no such file or folder", Hint: "relative names start from " + cfg.Root,
			Err: fs.ErrNotExist}
	default:
		return t, &Error{Arg: arg, Msg: "it cannot be accessed", Hint: hintAccess, Err: err}
	}
}

func resolveGlob(cfg Config, arg string) (target, error) {
	slashed := filepath.ToSlash(arg)
	if !doublestar.ValidatePattern(slashed) {
		return target{}, &Error{Arg: arg, Msg: "the pattern is malformed", Hint: "close all brackets and braces",
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
		return t, &Error{Arg: arg, Msg: fmt.Sprintf("the folder %q cannot be read", folder), Hint: hintAccess, Err: err}
	}
	return t, nil
}

func inRoot(root, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(root, name)
}

// folderPrefix returns the folder's name as the user wrote it, with a slash; empty for ".".
func folderPrefix(arg string) string {
	trimmed := strings.TrimRight(filepath.ToSlash(arg), "/")
	if trimmed == "." {
		return ""
	}
	return trimmed + "/"
}

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
func (c *collector) target(t target) error {
	switch t.kind {
	case kindStdin:
		return c.stdin()
	case kindFile:
		return c.take(candidate{name: t.arg, path: t.path, named: true})
	default:
		return c.walk(t)
	}
}

// nothing returns the error of arguments without any text.
func (c *collector) nothing() error {
	e := &Error{Arg: strings.Join(c.cfg.Args, " "), Msg: "no text found",
		Hint: "name a file, a folder or a pattern with text"}
	if c.skipped > 0 {
		e.Msg += fmt.Sprintf("; %d skipped, for example %s", c.skipped, c.example)
		e.Hint = "to read an ignored file, name the file itself"
	}
	return e
}

func (c *collector) skip(name, kind, why string) {
	c.skipped++
	c.example = cmp.Or(c.example, fmt.Sprintf("%q (%s)", name, why))
	c.sink.Skip(name, kind, why)
}
