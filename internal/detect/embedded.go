package detect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// This file handles code inside other formats: components with scripts in them,
// notebooks, and programs identified by their first line. The extracted code keeps the
// line numbers of the file.

// readAs returns the name that determines the language of a version, and its code.
func readAs(v *Version) (name string, code []byte) {
	text := bytes.TrimPrefix(v.Content, []byte("\uFEFF"))
	switch ext := strings.ToLower(path.Ext(v.Path)); ext {
	case ".vue", ".svelte", ".astro":
		return strings.TrimSuffix(v.Path, path.Ext(v.Path)) + ".ts", scripts(text)
	case ".ipynb":
		if cells, ok := notebook(text); ok {
			return strings.TrimSuffix(v.Path, path.Ext(v.Path)) + ".py", cells
		}
	case "":
		return v.Path + runBy(text), text
	}
	return v.Path, text
}

// language returns the language of a file; nil if it has none.
func (c *Change) language() *syntax.Language {
	v := &c.New
	if v.Path == "" || v.Content == nil {
		v = &c.Old
	}
	if v.Path == "" {
		return nil
	}
	name, _ := readAs(&Version{Path: v.Path, Content: v.Content[:min(len(v.Content), firstLine)]})
	if strings.EqualFold(path.Ext(v.Path), ".ipynb") { // its beginning is incomplete JSON
		name = "x.py"
	}
	return syntax.LanguageOf(name)
}

// inward makes all functions private: other files cannot import those of notebooks,
// components and programs.
func inward(m *syntax.Model) {
	for _, f := range m.Funcs {
		f.Public = false
	}
}

// firstLine is the number of bytes read to find the interpreter in the first line.
const firstLine = 200

// runBy returns the file extension that matches the interpreter in the first line.
func runBy(text []byte) string {
	line, _, _ := bytes.Cut(text[:min(len(text), firstLine)], []byte("\n"))
	program, ok := bytes.CutPrefix(line, []byte("#!"))
	if !ok {
		return ""
	}
	extensions := map[string]string{"python": ".py", "pypy": ".py", "node": ".js", "nodejs": ".js", "bun": ".js",
		"deno": ".ts", "tsx": ".ts", "ts-node": ".ts", "ruby": ".rb", "php": ".php", "sh": ".sh", "bash": ".sh",
		"dash": ".sh", "zsh": ".sh", "ksh": ".sh"}
	for word := range strings.FieldsSeq(string(program)) {
		if ext := extensions[strings.TrimRight(path.Base(word), "0123456789.")]; ext != "" {
			return ext
		}
	}
	return ""
}

var scriptParts = lazyregexp.New(`(?is)<script\b[^>]*>(.*?)</script\s*>`)

// scripts blanks everything in a component outside of its scripts.
func scripts(text []byte) []byte {
	code := slices.Clone(text)
	from := 0
	blank := func(to int) {
		for i := from; i < to; i++ {
			if code[i] != '\n' {
				code[i] = ' '
			}
		}
	}
	for _, at := range scriptParts().FindAllSubmatchIndex(text, -1) {
		blank(at[2])
		from = at[3]
	}
	blank(len(code))
	return code
}

// notebook returns the code of a notebook's cells; false if the file is not a notebook.
func notebook(text []byte) ([]byte, bool) {
	n := cells{text: text, in: json.NewDecoder(bytes.NewReader(text))}
	for {
		token, err := n.in.Token()
		if err != nil {
			return n.code.Bytes(), n.code.Len() > 0 || bytes.Contains(text, []byte(`"nbformat"`))
		}
		n.token(token)
	}
}

// cells reads a notebook token by token, because the tokens have offsets, from which the
// lines follow.
type cells struct {
	text []byte
	in   *json.Decoder
	// around are the objects (with the current key) and lists that enclose a token.
	around []container
	kind   string
	pieces []piece
	code   bytes.Buffer
	// line is the current line of the code written, counted the current line of the text at
	// offset at.
	line, counted, at int
}

type container struct {
	list  bool
	key   string
	value bool // the key was read, its value follows
}

type piece struct {
	line int
	text string
}

func (n *cells) token(t json.Token) {
	top := len(n.around) - 1
	switch t := t.(type) {
	case json.Delim:
		switch t {
		case '{', '[':
			n.around = append(n.around, container{list: t == '['})
			return
		default:
			n.around = n.around[:top]
			if top == 2 && n.around[0].key == "cells" {
				n.flush()
			}
		}
	case string:
		if top >= 0 && !n.around[top].list && !n.around[top].value {
			n.around[top].key, n.around[top].value = t, true
			return
		}
		n.value(t, top)
	}
	if top = len(n.around) - 1; top >= 0 {
		n.around[top].value = false
	}
}

// value handles a string value.
func (n *cells) value(t string, top int) {
	if top < 2 || n.around[0].key != "cells" || !n.around[1].list {
		return
	}
	switch {
	case top == 2 && n.around[2].key == "cell_type":
		n.kind = t
	case n.around[2].key == "source" && (top == 2 || top == 3 && n.around[3].list):
		end := int(n.in.InputOffset())
		n.counted += bytes.Count(n.text[n.at:end], []byte("\n"))
		n.at = end
		n.pieces = append(n.pieces, piece{n.counted, t})
	}
}

// flush writes the code of a cell. Commands of the notebook itself become comments.
func (n *cells) flush() {
	if n.kind == "code" {
		for _, p := range n.pieces {
			for n.line < p.line {
				n.code.WriteByte('\n')
				n.line++
			}
			if strings.HasPrefix(p.text, "%") || strings.HasPrefix(p.text, "!") {
				n.code.WriteByte('#')
			}
			n.code.WriteString(p.text)
			n.line += strings.Count(p.text, "\n")
		}
		n.code.WriteByte('\n')
		n.line++
	}
	n.kind, n.pieces = "", nil
}

// unread reports whether a file is in a language that is compared only as text.
func unread(name string) bool {
	return unreadEndings()[strings.ToLower(path.Ext(name))]
}

var unreadEndings = sync.OnceValue(wordSet(".c .cc .cpp .cxx .h .hh .hpp .m .mm .swift .scala .dart .ex .exs " +
	".erl .hs .ml .fs .vb .lua .pl .pm .jl .groovy .clj .sol .zig .nim .d .cr .elm .f90 .pas .r"))

// skipUnread records the files whose language is not supported.
func (r *run) skipUnread() {
	const most = 5
	var names []string
	for _, p := range r.pairs {
		if p.lang == nil && p.oldWhy == "" && p.newWhy == "" && unread(p.path) {
			names = append(names, p.path)
		}
	}
	if len(names) == 0 {
		return
	}
	shown := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	r.notAnalysed("", "not read as code, because their languages are not supported: "+shown)
}
