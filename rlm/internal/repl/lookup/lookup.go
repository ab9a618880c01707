// Package lookup is the functions by which the code of a REPL reads its context without
// loading it: files, search, grep, lines, cite and read. See engine.Functions.
//
// The results depend on the context and the arguments alone, so that code that is run again
// reads the same.
package lookup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/quote"
)

// Limits of the results. Code that asks for more gets an exception with the limit.
const (
	MaxFound      = 10_000   // passages of search and lines of grep
	MaxLineBytes  = 2000     // of a line that grep returns; longer ones are cut
	MaxTextBytes  = 8 << 20  // of a result of lines
	MaxReadBytes  = 4 << 20  // of a result of read
	MaxCitedBytes = 64 << 10 // of the text that is kept of a cited place; its hash is that of all of it
	MaxCitations  = 10_000
	maxQueryBytes = 10_000
	maxRegexBytes = 1 << 20
)

// Context is the context of one REPL. Its methods are called by one goroutine at a time.
type Context struct {
	// Reader has the files; nil if there is no context.
	Reader *pack.Reader
	// Find returns the best passages of the files, at most n.
	Find func(ctx context.Context, query string, n int) ([]model.Citation, error)
	// Columns has results in long lines name the byte of the line at which their text begins, and shows
	// the text round a match. Trees of earlier versions read lines from their beginning.
	Columns bool

	cited []model.Citation
}

// Citations are the places that the code cited.
func (c *Context) Citations() []model.Citation { return c.cited }

// Problem is what is wrong with the arguments of a function, for the code.
type Problem struct{ Text string }

// Error returns the text.
func (p *Problem) Error() string { return p.Text }

func problemf(format string, args ...any) *Problem { return &Problem{fmt.Sprintf(format, args...)} }

// arguments are those of all functions.
type arguments struct {
	Glob   string `json:"glob"`
	Query  string `json:"query"`
	Regex  string `json:"regex"`
	K      int    `json:"k"`
	File   string `json:"file"`
	First  int    `json:"first"`
	Last   int    `json:"last"`
	Column int    `json:"column"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
}

// Call carries out a function and returns its value. A *Problem is for the code; other errors
// are of the stored context, or of ctx.
func (c *Context) Call(ctx context.Context, function string, args json.RawMessage) (json.RawMessage, error) {
	var a arguments
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, problemf("%s: %v", function, err)
	}
	if c.Reader == nil {
		return nil, problemf("%s: the context has no files", function)
	}
	value, err := c.call(ctx, function, &a)
	if err != nil {
		if p, ok := errors.AsType[*Problem](err); ok {
			p.Text = function + ": " + p.Text
		}
		return nil, err
	}
	return json.Marshal(value)
}

func (c *Context) call(ctx context.Context, function string, a *arguments) (any, error) {
	switch function {
	case "files":
		return c.files(a.Glob)
	case "search":
		return c.search(ctx, a)
	case "grep":
		return c.grep(ctx, a)
	case "lines":
		if a.Column > 1 {
			return c.linesFrom(a)
		}
		return c.lines(a, MaxTextBytes)
	case "cite":
		return c.cite(a)
	case "read":
		return c.read(a)
	}
	return nil, problemf("there is no such function")
}

// files returns the names of the files that match a pattern, all without one. A pattern without
// a slash is for the name in any folder, as in .gitignore.
func (c *Context) files(glob string) ([]string, error) {
	names := []string{}
	if glob != "" && !doublestar.ValidatePattern(glob) {
		return nil, problemf("pattern %q is not valid", glob)
	}
	anywhere := !strings.Contains(glob, "/")
	for _, f := range c.Reader.Manifest().Files {
		if glob == "" || doublestar.MatchUnvalidated(glob, f.Name) ||
			anywhere && doublestar.MatchUnvalidated(glob, path.Base(f.Name)) {
			names = append(names, f.Name)
		}
	}
	return names, nil
}

// passage is a result of search.
type passage struct {
	File  string `json:"file"`
	First int    `json:"first"`
	Last  int    `json:"last"`
	// Column is the byte of the line, from 1, at which the text begins; 0 for the first one.
	Column int     `json:"column,omitempty"`
	Text   string  `json:"text"`
	Score  float64 `json:"score"`
}

func (c *Context) search(ctx context.Context, a *arguments) ([]passage, error) {
	if strings.TrimSpace(a.Query) == "" || len(a.Query) > maxQueryBytes {
		return nil, problemf("the query is empty, or longer than %d bytes", maxQueryBytes)
	}
	if a.K < 1 || a.K > MaxFound {
		return nil, problemf("k is %d, not between 1 and %d", a.K, MaxFound)
	}
	found, err := c.Find(ctx, a.Query, a.K)
	if err != nil {
		return nil, err
	}
	out := make([]passage, len(found))
	for i, f := range found {
		out[i] = passage{File: f.File, First: f.StartLine, Last: f.EndLine, Text: f.Text, Score: f.Score}
		if c.Columns {
			out[i].Column = f.StartColumn
		}
	}
	return out, nil
}

// match is a result of grep.
type match struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Column is the byte of the line, from 1, at which the text begins; 0 for the first one.
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}

func (c *Context) grep(ctx context.Context, a *arguments) ([]match, error) {
	if len(a.Regex) > maxRegexBytes {
		return nil, problemf("the regular expression has %d bytes, at most %d", len(a.Regex), maxRegexBytes)
	}
	re, err := regexp.Compile("(?m)" + a.Regex)
	if err != nil {
		return nil, problemf("%v (the syntax is that of RE2: no look-around, no references to groups)", err)
	}
	if a.K < 1 || a.K > MaxFound {
		return nil, problemf("k is %d, not between 1 and %d", a.K, MaxFound)
	}
	names, err := c.files(a.Glob)
	if err != nil {
		return nil, err
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	out, last := []match{}, model.Document{}
	for d, err := range c.Reader.All() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if !wanted[d.File] {
			continue
		}
		if !c.Columns {
			d.StartColumn = 0
		}
		if d.StartColumn > 1 && d.File == last.File && len(out) < a.K {
			out = append(out, acrossCut(&last, &d, re)...)
		}
		last = d
		if out = c.grepIn(&d, re, a.K, out); len(out) == a.K {
			break
		}
	}
	return out, nil
}

// grepIn appends the lines of a document in which a match begins, up to k in all.
func (c *Context) grepIn(d *model.Document, re *regexp.Regexp, k int, out []match) []match {
	line, counted := d.StartLine, 0 // the number of the line at offset counted
	for at := 0; at < len(d.Text) && len(out) < k; {
		loc := re.FindStringIndex(d.Text[at:])
		if loc == nil {
			break
		}
		begin := strings.LastIndexByte(d.Text[:at+loc[0]], '\n') + 1
		end := len(d.Text)
		if i := strings.IndexByte(d.Text[at+loc[0]:], '\n'); i >= 0 {
			end = at + loc[0] + i
		}
		if begin == len(d.Text) { // a match behind the last newline
			break
		}
		line += strings.Count(d.Text[counted:begin], "\n")
		counted = begin
		at = end + 1
		if !c.Columns || end-begin <= MaxLineBytes {
			out = append(out, match{File: d.File, Line: line, Text: clip.Bytes(d.Text[begin:end], MaxLineBytes)})
			continue
		}
		before := 0
		if begin == 0 {
			before = max(d.StartColumn-1, 0)
		}
		for _, m := range excerpts(d.Text[begin:end], re, k-len(out)) {
			m.File, m.Line = d.File, line
			if m.Column += before; m.Column == 1 {
				m.Column = 0
			}
			out = append(out, m)
		}
	}
	return out
}

// acrossCut returns the first match in a long line that begins in one document and ends in the next one,
// none if there is none.
func acrossCut(last, d *model.Document, re *regexp.Regexp) []match {
	const most = 16 << 10 // of a match, on each side
	from := startOfRune(last.Text, max(0, len(last.Text)-most))
	before := last.Text[from+strings.LastIndexByte(last.Text[from:], '\n')+1:]
	after, _, _ := strings.Cut(d.Text[:startOfRune(d.Text, min(len(d.Text), most))], "\n")
	text := before + after
	for _, loc := range re.FindAllStringIndex(text, MaxFound) {
		if loc[0] == 0 || loc[0] >= len(before) || loc[1] <= len(before) {
			continue
		}
		begin := startOfRune(text, max(0, loc[0]-MaxLineBytes/8))
		end := startOfRune(text, min(len(text), begin+MaxLineBytes))
		return []match{{File: d.File, Line: d.StartLine, Column: d.StartColumn - len(before) + begin, Text: text[begin:end]}}
	}
	return nil
}

// excerpts returns the parts of a long line round the matches in it, at most so many, and its beginning
// if a match goes on behind it.
func excerpts(line string, re *regexp.Regexp, most int) (out []match) {
	const before = MaxLineBytes / 8 // of a match
	shown := 0
	for _, loc := range re.FindAllStringIndex(line, MaxFound) {
		if len(out) == most {
			return out
		}
		if loc[0] < shown {
			continue
		}
		from := startOfRune(line, max(shown, loc[0]-before))
		shown = startOfRune(line, min(len(line), max(from+MaxLineBytes, loc[0]+1)))
		out = append(out, match{Column: from + 1, Text: line[from:shown]})
	}
	if out == nil {
		out = []match{{Column: 1, Text: clip.Bytes(line, MaxLineBytes)}}
	}
	return out
}

// startOfRune returns the offset of the character that a byte is in.
func startOfRune(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// linesFrom returns lines of a file from a column of the first one on.
func (c *Context) linesFrom(a *arguments) (string, error) {
	if a.Last < a.First {
		return "", problemf("line %d is before line %d", a.Last, a.First)
	}
	d, err := c.Reader.Range(a.File, a.First, a.Column, a.Last-a.First+1, MaxTextBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", problemf("there is no file %q", a.File)
	case errors.Is(err, pack.ErrRange):
		f, _ := c.Reader.File(a.File)
		if a.First >= 1 && int64(a.First) <= f.Lines {
			return "", problemf("line %d of %q ends before column %d", a.First, a.File, a.Column)
		}
		return "", problemf("%q has no line %d, but %d lines", a.File, a.First, f.Lines)
	}
	return strings.TrimSuffix(d.Text, "\n"), err
}

// lines returns lines of a file.
func (c *Context) lines(a *arguments, most int) (string, error) {
	size, err := c.Reader.LinesSize(a.File, a.First, a.Last)
	text := ""
	if err == nil && size <= int64(most) { // else it is not read
		text, err = c.Reader.Lines(a.File, a.First, a.Last)
		size = int64(len(text))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", problemf("there is no file %q", a.File)
	case errors.Is(err, pack.ErrRange):
		f, _ := c.Reader.File(a.File)
		return "", problemf("%q has no lines %d to %d, but %d lines", a.File, a.First, a.Last, f.Lines)
	case err != nil:
		return "", err
	case size > int64(most):
		return "", problemf("lines %d to %d of %q have %d bytes, at most %d", a.First, a.Last, a.File, size, most)
	}
	return text, nil
}

// cite records a place as one that the answer rests on, and returns its mark.
func (c *Context) cite(a *arguments) (string, error) {
	most := MaxCitedBytes
	if c.Columns {
		most = MaxTextBytes
	}
	text, err := c.lines(a, most)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(text))
	text = text[:startOfRune(text, min(len(text), MaxCitedBytes))]
	place := model.Citation{Kind: model.CitedQuote, File: a.File, StartLine: a.First, EndLine: a.Last, Text: text,
		SHA256: hex.EncodeToString(sum[:])}
	if !slices.Contains(c.cited, place) {
		if len(c.cited) == MaxCitations {
			return "", problemf("%d places are cited, and no more can be", MaxCitations)
		}
		c.cited = append(c.cited, place)
	}
	return quote.Reference(place), nil
}

// chunk is a result of read.
type chunk struct {
	// Data are bytes of the file, in base64.
	Data []byte `json:"data"`
}

// read returns bytes of a file.
func (c *Context) read(a *arguments) (*chunk, error) {
	f, ok := c.Reader.File(a.File)
	switch {
	case !ok:
		return nil, problemf("there is no file %q", a.File)
	case a.Offset < 0 || a.Length < 0 || a.Length > MaxReadBytes || a.Offset > f.Length:
		return nil, problemf("%d bytes at %d are not in %q, which has %d, or more than %d", a.Length, a.Offset, a.File,
			f.Length, MaxReadBytes)
	}
	data := make([]byte, min(a.Length, f.Length-a.Offset))
	if err := c.Reader.ReadFull(data, f.Offset+a.Offset); err != nil {
		return nil, err
	}
	return &chunk{data}, nil
}

// Preview returns the beginning of the context as text, at most n bytes.
func (c *Context) Preview(n int) (string, error) {
	files := c.Reader.Manifest().Files
	if len(files) == 0 {
		return "", nil
	}
	data := make([]byte, min(int64(n), files[0].Length))
	if err := c.Reader.ReadFull(data, files[0].Offset); err != nil {
		return "", err
	}
	for len(data) > 0 && !utf8.Valid(data) && len(data) > n-utf8.UTFMax {
		data = data[:len(data)-1]
	}
	return string(bytes.ToValidUTF8(data, []byte("\uFFFD"))), nil
}

// Text returns a context of one text, as a file without a name.
func Text(text string) (*Context, error) {
	var buf bytes.Buffer
	b := pack.NewBuilder(&buf, pack.Limits{})
	if err := b.Add(TextName, strings.NewReader(text)); err != nil {
		return nil, err
	}
	m, err := b.Manifest()
	if err != nil {
		return nil, err
	}
	r, err := pack.NewReader(m, bytes.NewReader(buf.Bytes()))
	return &Context{Reader: r}, err
}

// TextName is the name of the file that [Text] makes.
const TextName = "context"
