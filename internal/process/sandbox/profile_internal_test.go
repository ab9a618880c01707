package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProfile compares a profile with the one that was reviewed.
func TestProfile(t *testing.T) {
	t.Parallel()
	p := profile{execute: []string{"/P/bin/python3.12", "/P/Resources/Python.app/Contents/MacOS/Python"},
		read: []string{"/P", "/opt/homebrew/lib"}, hide: []string{"/Users/u/a \"b\"/.perdure", `/Users/u/c\d`},
		show: []string{`/Users/u/c\d/venv`}, write: []string{"/private/var/folders/x/T/perdure-repl-1/work"},
		see: []string{"/P", "/private", "/tmp"}}
	got, err := p.text()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "profile.sb"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// TestProfileRules: the profile of nothing lets nothing be written, executed, reached or signalled.
func TestProfileRules(t *testing.T) {
	t.Parallel()
	text, err := new(profile).text()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "(version 1)\n(deny default)\n") || depth(t, text) != 0 {
		t.Errorf("%s", text)
	}
	for line := range strings.SplitSeq(text, "\n") {
		for _, no := range []string{"network", "mach", "process-exec", "process-fork", "ipc", "sysctl-write", "file-write*"} {
			if strings.HasPrefix(line, "(allow") && strings.Contains(line, no) {
				t.Errorf("%s in %q", no, line)
			}
		}
		if strings.HasPrefix(line, "(allow") && !strings.Contains(line, "(target self)") && strings.HasSuffix(line, "*)") {
			t.Errorf("a rule without a filter: %q", line)
		}
	}
	names, prefixes := systemValues()
	for _, name := range append(names, prefixes...) {
		if strings.HasPrefix("kern.proc.all", name) || strings.HasPrefix("kern.procargs2", name) {
			t.Errorf("processes can be read by %q", name)
		}
	}
	for _, path := range systemPaths() {
		for _, private := range []string{"/System/Volumes/Data/Users/u", "/Users/u", "/private/etc/passwd", "/private/tmp"} {
			if strings.HasPrefix(private, path+"/") || private == path {
				t.Errorf("%s is below %s", private, path)
			}
		}
	}
}

// TestProfilePaths: paths are those behind symbolic links, and the links can be followed.
func TestProfilePaths(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{os.MkdirAll(at("private/var/work"), 0o700), os.MkdirAll(at("cellar/3.12/bin"), 0o700),
		os.MkdirAll(at("cellar/3.12/store/venv"), 0o700),
		os.WriteFile(at("cellar/3.12/bin/python"), nil, 0o700), os.Symlink("private/var", at("var")),
		os.Symlink(at("cellar/3.12"), at("opt")), os.Symlink("../../opt/bin/python", at("private/var/python3")),
		os.Symlink("loop", at("loop"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{Writable: []string{at("var/work")}, Hidden: []string{at("opt/store"), at("none")},
		Readable: []string{at("opt"), at("missing"), at("opt/store/venv")}, Confine: &Confine{Executed: []string{at("none")}}}
	got, err := cfg.profile(at("var/python3"))
	if err != nil {
		t.Fatal(err)
	}
	cellar := at("cellar/3.12")
	want := &profile{execute: []string{cellar + "/bin/python"}, read: []string{cellar, cellar + "/store/venv"},
		hide: []string{cellar + "/store"}, show: []string{cellar + "/store/venv"}, write: []string{at("private/var/work")}}
	want.see = got.see
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(profile{})); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{"var", "private/var/python3", "opt", "cellar", "cellar/3.12/bin/python", "private"} {
		if !slices.Contains(got.see, at(path)) {
			t.Errorf("%s is not among %q", path, got.see)
		}
	}
	if slices.Contains(got.see, "/") {
		t.Error("the root is among what is seen")
	}
	for _, program := range []string{at("loop"), at("missing"), "python3", "/"} {
		if p, err := cfg.profile(program); err == nil {
			t.Errorf("%s: %+v", program, p)
		}
	}
	cfg.Writable = append(cfg.Writable, at("missing"))
	if _, err := cfg.profile(at("var/python3")); err == nil {
		t.Error("a folder to write that is missing")
	}
}

// TestWrapRefuses: without its program, and for what it cannot do, there is no sandbox.
func TestWrapRefuses(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{}, {Network: true, Confine: new(Confine)}} {
		_, err := Wrap(&cfg, Program{Path: "/bin/sh"})
		if e, ok := errors.AsType[*Error](err); !ok || !e.Refused || !errors.Is(err, ErrUnsupported) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := os.Stat(sandboxExec); err == nil {
		t.Skip("this system has " + sandboxExec)
	}
	_, err := Wrap(&Config{Confine: new(Confine)}, Program{Path: "/bin/sh"})
	if e, ok := errors.AsType[*Error](err); !ok || !e.Refused || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestWrap: the tool gets the profile, the program and its arguments without the name of the program.
func TestWrap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tool := filepath.Join(dir, "sandbox-exec")
	if err := os.WriteFile(tool, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Writable: []string{dir}, Confine: new(Confine)}
	got, err := cfg.wrap(Program{Path: tool, Args: []string{"python3", "-c", "-p"}, Env: []string{"A=b"}, Dir: dir}, tool)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Args) < 3 || !strings.HasPrefix(got.Args[2], "(version 1)\n(deny default)\n") {
		t.Fatalf("%q", got.Args)
	}
	got.Args[2] = "…"
	want := Program{Path: tool, Args: []string{"sandbox-exec", "-p", "…", tool, "-c", "-p"}, Env: []string{"A=b"},
		Dir: dir}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	bad := filepath.Join(dir, "a\nb")
	if err := os.Mkdir(bad, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg.Writable = []string{bad}
	_, err = cfg.wrap(Program{Path: tool}, tool)
	if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Error(), "control character") {
		t.Errorf("a path with a line break: %v", err)
	}
}

// FuzzQuote reads quoted text as the language of profiles does: it is one string with the same
// bytes, whatever it contains.
func FuzzQuote(f *testing.F) {
	for _, text := range []string{"", "/tmp/a b", `/a"b`, `/a\`, `/a\"`, `\\"`, `") (allow default) ("`, "/é/日本",
		"a;b#c", "\x00", "a\nb", "\xff\xfe", "/a\x7f"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted, err := quote(text)
		if err != nil {
			if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0 {
				t.Fatalf("%q was refused: %v", text, err)
			}
			return
		}
		if got, rest, ok := readString(quoted); !ok || rest != "" || got != text {
			t.Fatalf("%q was quoted as %s, which is %q and %q", text, quoted, got, rest)
		}
		var w profileWriter
		w.rule("allow file-read*", w.filters("subpath", []string{text, "/x"}))
		if depth(t, w.String()) != 0 {
			t.Fatalf("%s", w.String())
		}
	})
}

// readString reads a string of Scheme from the beginning of a text.
func readString(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", text, false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", text, false // other escapes differ between versions
			}
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", text, false
}

// depth returns how many lists are open at the end of a text, which never closes more than it has.
func depth(t *testing.T, text string) int {
	t.Helper()
	open := 0
	for text != "" {
		if text[0] == '"' {
			_, rest, ok := readString(text)
			if !ok {
				t.Fatalf("a string without an end: %s", text)
			}
			text = rest
			continue
		}
		switch text[0] {
		case '(':
			open++
		case ')':
			open--
		}
		if open < 0 {
			t.Fatalf("it closes more than it opens: %s", text)
		}
		text = text[1:]
	}
	return open
}
