package walk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/corpus/walk"
)

// sink notes what it receives.
type sink struct {
	names   []string
	texts   map[string]string
	skipped map[string]string
	kinds   map[string]string
	notes   map[string]string
	// onAdd, when set, is called before a text is read; its error is Add's.
	onAdd func(name string) error
}

func (s *sink) Add(name string, r io.Reader) error {
	if s.onAdd != nil {
		if err := s.onAdd(name); err != nil {
			return err
		}
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("wrapped: %w", err)
	}
	s.names = append(s.names, name)
	s.texts[name] = string(data)
	return nil
}

func (s *sink) Skip(file, kind, why string) {
	s.skipped[file] = why
	s.kinds[file] = kind
}

func (s *sink) Note(file, kind, text string) { s.notes[file] = kind + ": " + text }

func newSink() *sink {
	return &sink{texts: map[string]string{}, skipped: map[string]string{}, kinds: map[string]string{},
		notes: map[string]string{}}
}

// files makes files below a new folder: the text of each by its name. A text
// "-> target" makes a symbolic link.
func files(t testing.TB, list map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range list {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			err = os.Symlink(filepath.FromSlash(target), path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func into(t testing.TB, root string, args ...string) (*sink, error) {
	t.Helper()
	s := newSink()
	return s, walk.Into(t.Context(), walk.Config{Root: root, Args: args}, s)
}

func TestNamesAreAsGiven(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{
		"a.txt": "a", "src/b.go": "b", "src/sub/c.go": "c", "src/sub/d.md": "d", "x[1].txt": "x",
	})
	slash := filepath.ToSlash(root)
	tests := []struct {
		args []string
		want []string
	}{
		{[]string{"a.txt"}, []string{"a.txt"}},
		{[]string{"./a.txt"}, []string{"./a.txt"}},
		{[]string{"src/../a.txt"}, []string{"src/../a.txt"}},
		{[]string{slash + "/a.txt"}, []string{slash + "/a.txt"}},
		{[]string{"src"}, []string{"src/b.go", "src/sub/c.go", "src/sub/d.md"}},
		{[]string{"src//"}, []string{"src/b.go", "src/sub/c.go", "src/sub/d.md"}},
		{[]string{"./src"}, []string{"./src/b.go", "./src/sub/c.go", "./src/sub/d.md"}},
		{[]string{"."}, []string{"a.txt", "src/b.go", "src/sub/c.go", "src/sub/d.md", "x[1].txt"}},
		{[]string{slash + "/src/sub"}, []string{slash + "/src/sub/c.go", slash + "/src/sub/d.md"}},
		{[]string{"src/*"}, []string{"src/b.go"}},
		{[]string{"src/*/*.go"}, []string{"src/sub/c.go"}},
		{[]string{"**/*.go"}, []string{"src/b.go", "src/sub/c.go"}},
		{[]string{"./**/*.md"}, []string{"./src/sub/d.md"}},
		{[]string{slash + "/s*/*.go"}, []string{slash + "/src/b.go"}},
		{[]string{"src/{b,sub/c}.go"}, []string{"src/b.go", "src/sub/c.go"}},
		{[]string{"x[1].txt"}, []string{"x[1].txt"}}, // a file of that very name
		{[]string{"?[.]txt"}, []string{"a.txt"}},
		{[]string{"src/sub", "a.txt", "src", "./a.txt", "."}, []string{"src/sub/c.go", "src/sub/d.md", "a.txt", "src/b.go",
			"x[1].txt"}},
	}
	for _, tt := range tests {
		got, err := into(t, root, tt.args...)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
		if diff := cmp.Diff(tt.want, got.names); diff != "" {
			t.Errorf("%q: names (-want +got):\n%s", tt.args, diff)
		}
		for name, text := range got.texts {
			if want := strings.TrimLeft(filepath.Base(name), "./")[:1]; text != want {
				t.Errorf("%q: %s holds %q", tt.args, name, text)
			}
		}
	}
}

func TestWhatIsGivenHasToBeThere(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{
		"ok.txt": "text", "empty": "", "bin": "a\x00b", "utf16": "\xff\xfea\x00\x00\xdcb\x00",
		"junk":         strings.Repeat("\x81\x82\x83a", 100),
		"folder/empty": "", "gone": "-> nowhere", "bad\nname": "x",
	})
	tests := []struct {
		name string
		arg  string
		want string
		hint string
		is   error
	}{
		{"missing", "nobody.txt", "no such file or folder", "relative names start from", fs.ErrNotExist},
		{"below a file", "ok.txt/x", "", "", nil},
		{"link to nothing", "gone", "no such file", "", fs.ErrNotExist},
		{"empty", "empty", "it is empty", "", nil},
		{"binary", "bin", "it is binary", "--pre", nil},
		{"invalid UTF-16", "utf16", "not UTF-16LE", "--encoding", nil},
		{"not UTF-8", "junk", "cannot be recognised", "--encoding", nil},
		{"no argument", "", "empty", "", nil},
		{"no standard input", "-", "standard input is not available", "", nil},
		{"glob without match", "*.pdf", "matches no file", "", nil},
		{"glob in a missing folder", "no/*.txt", "cannot be read", "", fs.ErrNotExist},
		{"glob in a file", "ok.txt/*", "cannot be read", "", nil},
		{"malformed glob", "*.[tx", "malformed", "brackets", nil},
		{"device", os.DevNull, "it is a device", "pipe the text", nil},
		{"name not plain", "bad\nname", "control characters", "rename it", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" && (tt.arg == os.DevNull || tt.arg == "bad\nname") {
				t.Skip("not on this system")
			}
			_, err := into(t, root, "ok.txt", tt.arg)
			var argErr *walk.Error
			if !errors.As(err, &argErr) || argErr.Arg != tt.arg {
				t.Fatalf("error %v, want one about %q", err, tt.arg)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(argErr.Hint, tt.hint) || tt.is != nil &&
				!errors.Is(err, tt.is) {
				t.Errorf("error %v, hint %q; want %q, %q", err, argErr.Hint, tt.want, tt.hint)
			}
		})
	}
}

func TestAllArgumentsAreCheckedFirst(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"ok.txt": "text"})
	got, err := into(t, root, "ok.txt", "one", "two", "three/*")
	if err == nil || len(got.names) != 0 {
		t.Fatalf("error %v after reading %q", err, got.names)
	}
	for _, want := range []string{`"one"`, `"two"`, `"three/*"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %s", err, want)
		}
	}
	for _, cfg := range []walk.Config{{}, {Root: root}, {Args: []string{"a"}},
		{Root: root, Args: []string{"a"}, MaxFileBytes: -1}} {
		if err := walk.Into(t.Context(), cfg, newSink()); err == nil || !strings.Contains(err.Error(), "walk config") {
			t.Errorf("config %+v: %v", cfg, err)
		}
	}
}

func TestWalkSkips(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{
		".git/config": "g", "sub/.git/HEAD": "g", ".perdure/config.yaml": "p",
		"a.txt": "text", "latin1.txt": "gr\xf6\xdfe und noch viel mehr Text", ".hidden": "kept",
		"bin": "a\x00b", "empty": "", "sub/bin": "\x00",
	})
	got, err := into(t, root, ".")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".hidden", "a.txt", "latin1.txt"}, got.names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := map[string]string{"bin": "it is binary", "empty": "it is empty", "sub/bin": "it is binary"}
	if diff := cmp.Diff(want, got.skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	kinds := map[string]string{"bin": walk.KindBinary, "empty": walk.KindEmpty, "sub/bin": walk.KindBinary}
	if diff := cmp.Diff(kinds, got.kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

func TestNothingFound(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"src/bin": "\x00", "src/empty": "", "other/bin": "\x00"})
	_, err := into(t, root, "src", "other")
	var argErr *walk.Error
	if !errors.As(err, &argErr) ||
		!strings.Contains(err.Error(),
			`"src other": no text found; 3 skipped, for example "src/bin" (it is binary)`) {
		t.Errorf("error %v", err)
	}
	if err := os.Mkdir(filepath.Join(root, "nothing"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := into(t, root, "nothing"); !errors.As(err, &argErr) {
		t.Errorf("error %v", err)
	}
}

func TestStdin(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"a": "text"})
	broken := errors.New("terminal went away")
	long := strings.Repeat("line\n", 10_000)
	tests := []struct {
		name  string
		args  []string
		stdin io.Reader
		limit int64
		want  string
	}{
		{"text", []string{"a", "-"}, strings.NewReader(long), 0, ""},
		{"slow text", []string{"-"}, iotest.OneByteReader(strings.NewReader(long)), 0, ""},
		{"empty", []string{"-"}, strings.NewReader(""), 0, "it is empty"},
		{"binary", []string{"-"}, strings.NewReader("\x00"), 0, "it is binary"},
		{"twice", []string{"-", "a", "-"}, strings.NewReader(long), 0, "named twice"},
		{"too large", []string{"-"}, strings.NewReader(long), 49_999, "larger than the limit of 49999 bytes"},
		{"as large as allowed", []string{"-"}, strings.NewReader(long), 50_000, ""},
		{"broken", []string{"-"}, io.MultiReader(strings.NewReader(long), iotest.ErrReader(broken)), 0, "terminal went away"},
		{"broken at once", []string{"-"}, iotest.ErrReader(broken), 0, "terminal went away"},
		{"cut", []string{"-"}, io.MultiReader(strings.NewReader("x"), iotest.ErrReader(io.ErrUnexpectedEOF)), 0,
			"unexpected EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSink()
			err := walk.Into(t.Context(), walk.Config{Root: root, Args: tt.args, Stdin: tt.stdin, MaxFileBytes: tt.limit}, s)
			if tt.want == "" && (err != nil || s.texts["-"] != long) {
				t.Errorf("%d bytes, %v", len(s.texts["-"]), err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestMaxFileBytes(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"s/small": "12345", "s/large": "123456"})
	s := newSink()
	cfg := walk.Config{Root: root, Args: []string{"s"}, MaxFileBytes: 5}
	if err := walk.Into(t.Context(), cfg, s); err != nil {
		t.Fatal(err)
	}
	if len(s.names) != 1 || !strings.Contains(s.skipped["s/large"], "limit of 5 bytes") {
		t.Errorf("names %q, skipped %q", s.names, s.skipped)
	}
	cfg.Args = []string{"s/large"}
	if err := walk.Into(t.Context(), cfg, s); err == nil || !strings.Contains(err.Error(), "limit of 5 bytes") {
		t.Errorf("error %v", err)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	outside := files(t, map[string]string{"secret": "s", "folder/secret": "s"})
	root := files(t, map[string]string{
		"d/v2/a.md":         "a",
		"d/current":         "-> v2",
		"d/first.md":        "-> v2/a.md",
		"d/.gitignore":      "/build/",
		"d/build/out.md":    "o",
		"d/docs":            "-> build/",
		"d/v2/loop":         "-> ..",
		"d/self":            "-> self",
		"d/up":              "-> ../",
		"d/gone":            "-> nowhere",
		"d/out.txt":         "-> " + filepath.ToSlash(outside) + "/secret",
		"d/outdir":          "-> " + filepath.ToSlash(outside) + "/folder",
		"d/gitlink":         "-> .git/config",
		"d/.git/config":     "g",
		"link":              "-> d/v2",
		"linkfile":          "-> d/v2/a.md",
		"d/v2/.perdure/log": "p",
	})
	got, err := into(t, root, "d")
	if err != nil {
		t.Fatal(err)
	}
	// docs leads to a folder that is ignored under its own name.
	if diff := cmp.Diff([]string{"d/.gitignore", "d/v2/a.md", "d/docs/out.md"}, got.names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"d/gone": "to a missing file", "d/self": "circular", "d/up": "outside", "d/v2/loop": "a folder that contains it",
		"d/out.txt": "outside",
		"d/outdir":  "outside", "d/build/": "ignored by line 1 of",
	} {
		if !strings.Contains(got.skipped[name], want) {
			t.Errorf("%s: skipped because %q, want %q", name, got.skipped[name], want)
		}
		delete(got.skipped, name)
	}
	if len(got.skipped) > 0 {
		t.Errorf("also skipped: %q", got.skipped)
	}
	for arg, want := range map[string]string{"link": "link/a.md", "linkfile": "linkfile", "d/*.md": "d/first.md"} {
		got, err := into(t, root, arg)
		if err != nil || !cmp.Equal(got.names, []string{want}) {
			t.Errorf("%s: %q, %v; want %q", arg, got.names, err, want)
		}
	}
}

func TestFileVanishes(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"s/a": "a", "s/b": "b", "s/c": "c", "s/d/e": "e"})
	s := newSink()
	s.onAdd = func(name string) error {
		if name != "s/a" {
			return nil
		}
		if err := os.RemoveAll(filepath.Join(root, "s", "d")); err != nil {
			return err
		}
		return os.Remove(filepath.Join(root, "s", "b"))
	}
	if err := walk.Into(t.Context(), walk.Config{Root: root, Args: []string{"s"}}, s); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(s.names, []string{"s/a", "s/c"}) || !strings.Contains(s.skipped["s/b"], "it was removed") ||
		s.skipped["s/d/"] == "" {
		t.Errorf("names %q, skipped %q", s.names, s.skipped)
	}
	s.onAdd = func(string) error { return os.Remove(filepath.Join(root, "s", "c")) }
	err := walk.Into(t.Context(), walk.Config{Root: root, Args: []string{"s/a", "s/c"}}, s)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a named file was removed: %v", err)
	}
}

// TestGrowingFile: a file is taken as long as it was when it was opened.
func TestGrowingFile(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"log": strings.Repeat("line\n", 3000)})
	s := newSink()
	s.onAdd = func(string) error {
		f, err := os.OpenFile(filepath.Join(root, "log"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("later\n")
		return errors.Join(err, f.Close())
	}
	if err := walk.Into(t.Context(), walk.Config{Root: root, Args: []string{"log"}}, s); err != nil {
		t.Fatal(err)
	}
	if len(s.texts["log"]) != 15_000 {
		t.Errorf("%d bytes, want 15000", len(s.texts["log"]))
	}
}

// TestChangingFile: what is taken is what the file held at one time, or nothing.
func TestChangingFile(t *testing.T) {
	t.Parallel()
	old, changed := strings.Repeat("old line\n", 40_000), strings.Repeat("new line\n", 40_000)
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
	tests := []struct {
		name string
		// change happens when the file's beginning was read, the n-th time.
		change func(path string, n int) error
		want   string // "" if the file keeps changing
	}{
		{"rewritten once", func(path string, n int) error { return write(path, []string{changed, changed}[min(n, 1)]) },
			changed},
		{"cut once", func(path string, n int) error { return write(path, changed[:20_000]) }, changed[:20_000]},
		{"emptied and written by name", func(path string, n int) error {
			return errors.Join(os.Remove(path), write(path, changed))
		}, old},
		{"grown", func(path string, n int) error { return write(path, old+changed) }, old},
		{"grown and changed", func(path string, n int) error { return write(path, changed+old) }, changed + old},
		{"never still", func(path string, n int) error {
			return write(path, strings.Repeat(fmt.Sprintf("line %03d\n", n), 40_000))
		}, ""},
	}
	for _, tt := range tests {
		for _, arg := range []string{"s", "s/file"} {
			t.Run(tt.name+" "+arg, func(t *testing.T) {
				t.Parallel()
				root := files(t, map[string]string{"s/file": old, "s/other": "other"})
				path := filepath.Join(root, "s", "file")
				s, n := newSink(), 0
				s.onAdd = func(name string) error {
					if name != "s/file" {
						return nil
					}
					n++
					return tt.change(path, n-1)
				}
				err := walk.Into(t.Context(), walk.Config{Root: root, Args: []string{arg}}, s)
				switch {
				case tt.want == "" && arg == "s/file":
					if err == nil || !strings.Contains(err.Error(), "changes while it is read") {
						t.Errorf("error %v", err)
					}
				case err != nil:
					t.Fatal(err)
				case tt.want == "":
					if s.kinds["s/file"] != walk.KindChanged || s.texts["s/file"] != "" || n != 3 {
						t.Errorf("skipped %q after %d reads", s.skipped, n)
					}
				case s.texts["s/file"] != tt.want:
					t.Errorf("taken %d bytes after %d reads, %q…; want %q…", len(s.texts["s/file"]), n, s.texts["s/file"][:20],
						tt.want[:20])
				}
			})
		}
	}
}

func TestSinkFailsAndContextEnds(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"s/a": "a", "s/b": "b"})
	full := errors.New("disk full")
	s := newSink()
	s.onAdd = func(string) error { return full }
	err := walk.Into(t.Context(), walk.Config{Root: root, Args: []string{"s"}}, s)
	if !errors.Is(err, full) || len(s.skipped) > 0 {
		t.Errorf("error %v, skipped %q; want the sink's error", err, s.skipped)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s = newSink()
	s.onAdd = func(string) error { cancel(); return nil }
	err = walk.Into(ctx, walk.Config{Root: root, Args: []string{"s"}}, s)
	if !errors.Is(err, context.Canceled) || len(s.skipped) > 0 {
		t.Errorf("error %v, skipped %q; want canceled", err, s.skipped)
	}
}

func TestBinaryOnlyLater(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("é"), 10_000) // 8 KiB end within a rune
	root := files(t, map[string]string{"a": "x" + string(text), "dir/skipped": "\x00"})
	got, err := into(t, root, "a")
	if err != nil || got.texts["a"] != "x"+string(text) {
		t.Errorf("%d bytes, %v", len(got.texts["a"]), err)
	}
	// What a walk skips is still an error when it is named.
	if _, err := into(t, root, "a", "dir", "dir/skipped"); err == nil {
		t.Error("a binary file that was named is not an error")
	}
}
