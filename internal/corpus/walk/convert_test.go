package walk_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/corpus/charset"
	"github.com/perdure/perdure/internal/corpus/preprocess"
	"github.com/perdure/perdure/internal/corpus/walk"
)

// TestEncodingsInContexts proves that a text is converted and noted, that one of unknown encoding is
// an error if it was named, and is listed as skipped if it was found.
func TestEncodingsInContexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("plain text, line after line\n", 60_000) // beyond the part that is looked at first
	root := files(t, map[string]string{
		"jp.txt":    "\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x83\x65\x83\x4c\x83\x58\x83\x67\nZEBRA\n",
		"mark.txt":  "\xef\xbb\xbftext\n",
		"late.txt":  long + "Jos\xe9 P\xe9rez\n" + long,
		"mixed.txt": "déjà vu, naïve, Ünder, straße\n" + long + "caf\xe9\n",
		"stray.txt": "value \x9d\n",
		"cut.log":   "日本語の文\n終\xe3\x82",
		"u16":       "\xff\xfeh\x00i\x00\n\x00",
		"real.txt":  "a \uFFFD that was there\n",
		"doc.pdf":   "%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n",
		"about.txt": "%PDF-1.4 is the first line of a document\n",
	})
	got, err := into(t, root, ".")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"jp.txt": "日本語のテキスト\nZEBRA\n", "mark.txt": "text\n", "late.txt": long + "José Pérez\n" + long, "cut.log": "日本語の文\n終",
		"u16": "hi\n", "real.txt": "a \uFFFD that was there\n", "about.txt": "%PDF-1.4 is the first line of a document\n",
	} {
		if got.texts[name] != want {
			t.Errorf("%s: %.100q, skipped %q", name, got.texts[name], got.skipped[name])
		}
	}
	for name, want := range map[string]string{"jp.txt": "from Shift-JIS", "late.txt": "from Windows-1252",
		"cut.log": "incomplete character", "u16": "from UTF-16LE"} {
		if !strings.Contains(got.notes[name], want) {
			t.Errorf("%s: note %q, want %q", name, got.notes[name], want)
		}
	}
	if len(got.notes) != 4 {
		t.Errorf("notes %q", got.notes)
	}
	for name, tt := range map[string]struct{ kind, why, hint string }{
		"mixed.txt": {walk.KindEncoding, "line 60002 has bytes that are not UTF-8", "iconv -c"},
		"stray.txt": {walk.KindEncoding, "cannot be recognised", "--encoding"},
		"doc.pdf":   {walk.KindBinary, "PDF", "pdftotext - -"},
	} {
		if got.kinds[name] != tt.kind || !strings.Contains(got.skipped[name], tt.why) {
			t.Errorf("%s is skipped as %q: %q", name, got.kinds[name], got.skipped[name])
		}
		_, err := into(t, root, name)
		named, ok := errors.AsType[*walk.Error](err)
		if !ok || !strings.Contains(named.Error(), tt.why) || !strings.Contains(named.Hint, tt.hint) {
			t.Errorf("%s named: %v, %+v", name, err, named)
		}
	}
	s := newSink()
	cyrillic, _ := charset.Find("windows-1251")
	err = walk.Into(t.Context(), walk.Config{Root: root, Args: []string{"late.txt", "mark.txt", "mixed.txt"},
		Encoding: &cyrillic}, s)
	if err != nil && !strings.Contains(err.Error(), "mixed.txt") || !strings.Contains(s.texts["late.txt"], "Josй") ||
		s.texts["mark.txt"] != "text\n" {
		t.Errorf("with a chosen encoding: notes %q, %v", s.notes, err)
	}
}

// TestCommandsTurnFilesIntoText proves what --pre does: its output is the text; a command that fails,
// writes nothing or is missing is an error for a named file, and skips one that was found.
func TestCommandsTurnFilesIntoText(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of Unix")
	}
	root := files(t, map[string]string{"a.up": "text\n", "sub/b.path": "x", "c.fail": "x", "d.none": "x", "e.missing": "x",
		"f.binary": "\x00\x01", "g.latin": "x", "plain.txt": "plain\n"})
	var rules preprocess.Rules
	for _, text := range []string{"*.up=tr a-z A-Z", "sub/*.path=sh -c 'echo file ${PERDURE_FILE##*/} \"${0##*/}\"' {}",
		"*.fail=sh -c 'echo half; echo boo >&2; exit 3'", "*.none=true", "*.missing=no-such-program-here",
		"*.binary=od -An -tx1",
		`*.latin=printf 'caf\351'`} {
		rule, err := preprocess.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	read := func(names ...string) (*sink, error) {
		s := newSink()
		return s, walk.Into(t.Context(), walk.Config{Root: root, Args: names, Pre: rules}, s)
	}
	got, err := read(".")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a.up": "TEXT\n", "sub/b.path": "file b.path b.path\n",
		"plain.txt": "plain\n",
		"f.binary":  " 00 01\n", "g.latin": "café"} {
		if got.texts[name] != want {
			t.Errorf("%s: %q, skipped %q", name, got.texts[name], got.skipped[name])
		}
	}
	if got.notes["a.up"] != `converted: by "tr a-z A-Z"` || got.notes["g.latin"] == "" || len(got.notes) != 4 {
		t.Errorf("notes %q", got.notes)
	}
	for name, want := range map[string]string{"c.fail": "exit status 3: boo", "d.none": "wrote no text",
		"e.missing": "not found"} {
		if got.kinds[name] != walk.KindCommand || !strings.Contains(got.skipped[name], want) {
			t.Errorf("%s is skipped as %q: %q", name, got.kinds[name], got.skipped[name])
		}
		if _, err := read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s named: %v", name, err)
		}
	}
	for _, text := range []string{"", "=x", "*.pdf=", "*.pdf", "[=cat", "*.x='unclosed", "*.x=a | b"} {
		if rule, err := preprocess.Parse(text); err == nil {
			t.Errorf("%q is the rule %+v", text, rule)
		}
	}
}

// TestCommandsHaveLimits proves that a command which does not end, or writes without end, is stopped, and
// that its file is refused or left out with the reason.
func TestCommandsHaveLimits(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of Unix")
	}
	root := files(t, map[string]string{"a.slow": "x", "b.long": "x", "c.ok": "fine\n", "d.slowly": "x"})
	var rules preprocess.Rules
	for text, limits := range map[string]preprocess.Rule{
		"*.slow=sh -c 'sleep 600 & wait'":             {Timeout: 100 * time.Millisecond},
		"*.slowly=sh -c 'echo begun; exec sleep 600'": {Timeout: 100 * time.Millisecond},
		"*.long=yes": {MaxBytes: 1 << 20},
		"*.ok=cat":   {Timeout: time.Minute, MaxBytes: 5}} {
		rule, err := preprocess.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		rule.Timeout, rule.MaxBytes = limits.Timeout, limits.MaxBytes
		rules = append(rules, rule)
	}
	got := newSink()
	if err := walk.Into(t.Context(), walk.Config{Root: root, Args: []string{"."}, Pre: rules}, got); err != nil {
		t.Fatal(err)
	}
	if got.texts["c.ok"] != "fine\n" || len(got.texts) != 1 {
		t.Errorf("read %q", got.texts)
	}
	for name, want := range map[string]string{"a.slow": "it ran longer than 100ms", "d.slowly": "it ran longer than 100ms",
		"b.long": "it wrote more than the limit of 1048576 bytes"} {
		if got.kinds[name] != walk.KindCommand || !strings.Contains(got.skipped[name], want) {
			t.Errorf("%s is skipped as %q: %q", name, got.kinds[name], got.skipped[name])
		}
		err := walk.Into(t.Context(), walk.Config{Root: root, Args: []string{name}, Pre: rules}, newSink())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s named: %v", name, err)
		}
	}
}

// TestNotebooksAreReadAsCells proves that notebooks are read as their cells, and others as text.
func TestNotebooksAreReadAsCells(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"broken.ipynb": "{\"cells\": [", "no.ipynb": "# just text\n",
		"list.ipynb": "[1, 2]\n", "other.ipynb": "{}", "comma.ipynb": `{"nbformat": 4,, "cells": []}`,
		"kind.ipynb": `{"nbformat": 4, "cells": "none"}`, "cut.json": "{\"cells\": [",
		"jp.ipynb": "\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x83\x65\x83\x4c\x83\x58\x83\x67\n",
		"ok.ipynb": `{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["# Title\n", "text"]}]}`})
	got, err := into(t, root, ".")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"broken.ipynb": "{\"cells\": [", "no.ipynb": "# just text\n",
		"list.ipynb": "[1, 2]\n", "jp.ipynb": "日本語のテキスト\n",
		"ok.ipynb": "[notebook: 1 cell]\n\n[cell 1: markdown]\n# Title\ntext\n"} {
		if got.texts[name] != want {
			t.Errorf("%s: %q, skipped %q", name, got.texts[name], got.skipped[name])
		}
	}
	for name, want := range map[string]string{"broken.ipynb": "it ends early, at byte 11",
		"other.ipynb": "it has no cells of a notebook", "comma.ipynb": "it is not valid JSON at byte 16",
		"kind.ipynb": `the member "cells" is not that of a notebook`, "no.ipynb": "", "list.ipynb": "", "cut.json": "",
		"ok.ipynb": ""} {
		note, isBroken := strings.CutPrefix(got.notes[name], walk.NoteBroken+": ")
		if isBroken != (want != "") || !strings.HasPrefix(note, want) || isBroken && !strings.Contains(note, "read as text") {
			t.Errorf("%s: note %q, want %q", name, got.notes[name], want)
		}
	}
	plot, err := os.ReadFile(filepath.Join("..", "..", "..", "e2e", "testdata", "cases", "files", "plot.ipynb"))
	if err != nil {
		t.Fatal(err)
	}
	got, err = into(t, files(t, map[string]string{"plot.ipynb": string(plot)}), "plot.ipynb")
	if text := got.texts["plot.ipynb"]; err != nil || len(text) > 300 || !strings.Contains(text, "ZEBRA-NB") ||
		!strings.Contains(text, "left out") {
		t.Errorf("%d bytes, %v: %.500s", len(text), err, text)
	}
}
