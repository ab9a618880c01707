package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/corpus/folders"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/nearest"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/plan"
	"github.com/perdure/perdure/rlm/internal/quote"
)

// Config configures a [Session].
type Config struct {
	Limits
	// Schema is the JSON Schema of the answer, empty for text.
	Schema string
	// Question is what the passages at the beginning are searched for.
	Question string
	Reader   *pack.Reader
	// Find returns the best passages of the context, at most n.
	Find func(ctx context.Context, query string, n int) ([]model.Citation, error)
	// Call carries out the request of this number of a reply, from 0, for a tool of the user. The
	// same request has the same result.
	Call func(ctx context.Context, reply, number int, r Request) (string, error)
	// Room is how many bytes of a request there are for folders, passages, replies and
	// results.
	Room int
}

// leastRoom is the room with which a session ends, in bytes.
const leastRoom = 600

// Session is one retrieval: what the model was shown so far. The same replies lead to the
// same requests, so that an interrupted session is repeated from its replies. It serves
// one goroutine.
type Session struct {
	cfg      Config
	files    []pack.File
	sections []section // of all requests, behind the question
	ends     []int     // of the parts of sections that requests were made of
	left     int       // bytes of the room
	shown    []excerpt
	// Searches and Ranges count what was carried out, LeftOut the passages and listings that
	// [Session.Shorten] left out or cut.
	Searches, Ranges, LeftOut int
	// Calls counts the tools of the user that were called.
	Calls int
}

// excerpt is text that was shown. Of a cut one, the last line is not whole. What was left out
// later is in no request any more.
type excerpt struct {
	model.Document
	cut, leftOut bool
}

// Open begins a session with the folders of the context and the best passages.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	s := &Session{cfg: cfg, left: cfg.Room}
	for _, f := range cfg.Reader.Manifest().Files {
		if f.Length > 0 {
			s.files = append(s.files, f)
		}
	}
	s.write("\n\n=== folders ===\n")
	s.add(section{text: folders.Describe(s.files, cfg.Room/10), kind: listing})
	s.write("=== end of folders ===\n")
	s.write("\n=== best passages for the question ===\n")
	if err := s.search(ctx, cfg.Question, cfg.FirstResults, cfg.Room/3); err != nil {
		return nil, err
	}
	s.write("=== end of passages ===\n")
	s.ends = append(s.ends, len(s.sections))
	return s, nil
}

// Full reports whether there is no room for further results.
func (s *Session) Full() bool { return s.left < leastRoom }

// Growth returns how many bytes the next prompt can be longer at most.
func (s *Session) Growth() int {
	const messages = 8 << 10
	of := s.cfg.Requests*max(s.cfg.RangeBytes, s.cfg.Results*s.cfg.PassageBytes) + messages
	return min(max(s.left, leastRoom)+messages, of)
}

// Prompt returns the prompt for a reply, counted from 1: the question, what was shown, and
// that there are at most so many replies, or that this is the last one.
func (s *Session) Prompt(reply, most int, last bool) string {
	state := fmt.Sprintf("\nThis is reply %d of at most %d: write requests, or ANSWER and the answer.", reply, most)
	if last {
		answer := "and the answer"
		if s.cfg.Schema != "" {
			answer = "and one JSON value that is valid against the JSON Schema of the instructions, then its quotes"
		}
		state = fmt.Sprintf("\nThis is reply %d and the last one: write ANSWER %s. Requests are not carried out any more.",
			reply, answer)
	}
	return s.cfg.Question + s.text(len(s.sections)) + state
}

// Shared returns the places in a prompt up to which earlier prompts are the same, and, unless
// it is the last one, those that follow.
func (s *Session) Shared(last bool) []int {
	ends := s.ends
	if last {
		ends = ends[:len(ends)-1]
	}
	places := make([]int, len(ends))
	for i, end := range ends {
		places[i] = len(s.cfg.Question) + len(s.text(end))
	}
	return places
}

// Follow carries out the requests of a reply and adds the results to the prompt, or a
// message about what is wrong with it. Errors are those of the context.
func (s *Session) Follow(ctx context.Context, reply int, r Reply) error {
	s.write("\n=== your reply %d ===\n", reply)
	for _, req := range r.Requests {
		s.write("%s\n", clip.Bytes(req.String(), 2*s.cfg.QueryBytes))
	}
	s.write("=== results of reply %d ===\n", reply)
	for i, req := range r.Requests {
		room := max(s.left-leastRoom, 0) / (len(r.Requests) - i)
		if s.cfg.isCustom(req.Kind) && room >= leastRoom {
			result, err := s.cfg.Call(ctx, reply, i, req)
			if err != nil {
				return err
			}
			s.showResult(req, result, room)
		} else if err := s.carryOut(ctx, req, room); err != nil {
			return err
		}
	}
	switch {
	case r.Problem != "":
		s.write("(Not understood: %s. A request is a line SEARCH words, LIST folder/ or READ file:FIRST-LAST; an answer "+
			"begins with the line ANSWER.)\n", clip.Bytes(r.Problem, 300))
	case r.Early:
		s.write("(The answer behind the requests was ignored: answer when you have seen the results.)\n")
	}
	if r.MoreRequests > 0 {
		s.write("(%s not carried out: a reply has at most %d.)\n", human.Count(r.MoreRequests, "request"), s.cfg.Requests)
	}
	s.write("=== end of results ===\n")
	s.ends = append(s.ends, len(s.sections))
	return nil
}

// Unsupported asks for an answer again whose quotes are not in what was shown.
func (s *Session) Unsupported(reply int, text string) (problem bool) {
	_, quotes := quote.Parse(text)
	var wrong []string
	index := quote.NewIndex(s.Shown())
	for _, q := range quotes[:min(len(quotes), quote.MaxQuotes)] {
		if _, ok := index.Find(q); !ok && len(wrong) < 10 {
			wrong = append(wrong, "[^"+q.Label+"]")
		}
	}
	why := "These quotes are not in the text that you were shown: " + strings.Join(wrong, ", ") + "."
	switch {
	case len(quotes) == 0:
		why = "The answer has no quotes."
	case len(wrong) == 0:
		return false
	}
	s.write("\n=== your reply %d ===\n%s\n=== end of reply ===\n(%s Write the whole answer again with quotes copied "+
		"from the text, or ask for more.)\n", reply, clip.Bytes(text, max(s.left/4, leastRoom)), why)
	s.ends = append(s.ends, len(s.sections))
	return true
}

// carryOut writes the result of a request in at most room bytes.
func (s *Session) carryOut(ctx context.Context, r Request, room int) error {
	if room < leastRoom {
		s.write("(%s: no room is left for results; answer now.)\n", clip.Bytes(r.String(), 100))
		return nil
	}
	switch r.Kind {
	case Search:
		s.Searches++
		s.write("passages for %q:\n", r.Text)
		return s.search(ctx, r.Text, s.cfg.Results, room)
	case List:
		s.list(r.Text, room)
		return nil
	}
	s.Ranges++
	return s.read(r, room)
}

// showResult shows what a tool of the user returned, in at most room bytes.
func (s *Session) showResult(r Request, result string, room int) {
	most := max(min(s.cfg.RangeBytes, room-300), 0)
	s.write("result of %s:\n", clip.Bytes(r.String(), s.cfg.QueryBytes))
	s.write("%s\n", strings.TrimRight(clip.Bytes(result, most), "\n"))
	if len(result) > most {
		s.write("(cut: the result has %d bytes)\n", len(result))
	}
	s.Calls++
}

// search shows the best passages for a query.
func (s *Session) search(ctx context.Context, query string, n, room int) error {
	found, err := s.cfg.Find(ctx, query, n)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		s.write("(nothing found; try other words)\n")
	}
	end := s.left - room
	for i, c := range found {
		if s.wasShown(c) {
			s.write("=== %q lines %d-%d === (shown above)\n", c.File, c.StartLine, c.EndLine)
			continue
		}
		text, within := cutLines(c.Text, min(s.cfg.PassageBytes, s.left-end-len(c.File)-100))
		if text == "" {
			s.write("(%s not shown: no room)\n", human.Count(len(found)-i, "passage"))
			break
		}
		d := model.Document{File: c.File, StartLine: c.StartLine, StartColumn: c.StartColumn, Text: text}
		// A long passage of one line is a part of it.
		s.show(excerpt{Document: d, cut: within || len(text) >= longPassage && !strings.Contains(text, "\n")})
	}
	return nil
}

// longPassage is the least length of a passage within a line.
const longPassage = 2 << 10

// show shows text of a file.
func (s *Session) show(d excerpt) {
	s.add(section{text: d.text(), kind: passage, shown: len(s.shown)})
	s.shown = append(s.shown, d)
}

// text returns the passage as it is shown.
func (d *excerpt) text() string {
	if d.StartColumn > 0 {
		return fmt.Sprintf("=== %q line %d from column %d ===\n%s\n", d.File, d.StartLine, d.StartColumn,
			strings.TrimSuffix(d.Text, "\n"))
	}
	return fmt.Sprintf("=== %q lines %d-%d ===\n%s\n", d.File, d.StartLine, d.EndLine(), strings.TrimSuffix(d.Text, "\n"))
}

// wasShown reports whether the prompt has all lines of a passage.
func (s *Session) wasShown(c model.Citation) bool {
	return slices.ContainsFunc(s.shown, func(d excerpt) bool {
		return !d.leftOut && d.File == c.File && d.StartLine <= c.StartLine && c.EndLine <= d.EndLine() &&
			strings.Contains(d.Text, c.Text)
	})
}

// cutLines returns the first lines of a text that have at most n bytes together, or the
// beginning of a first line that is longer; within is set then.
func cutLines(text string, n int) (first string, within bool) {
	switch {
	case n <= 0:
		return "", false
	case len(text) <= n:
		return text, false
	}
	if i := strings.LastIndexByte(text[:n+1], '\n'); i > 0 {
		return text[:i], false
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], true
}

// list shows what is in a folder, or the files of a pattern.
func (s *Session) list(name string, room int) {
	entries := folders.List(s.files, name)
	if strings.ContainsAny(name, "*?[{") {
		names := make([]string, len(s.files))
		for i, f := range s.files {
			names[i] = f.Name
		}
		entries = nil
		for _, i := range plan.Match(names, name) {
			entries = append(entries, folders.File(s.files[i]))
		}
	}
	s.write("in %q:\n", clip.Bytes(name, s.cfg.QueryBytes))
	if len(entries) == 0 {
		s.write("(no files; names are as in the passages and listings above)\n")
	}
	var list strings.Builder
	for i, e := range entries {
		if i == s.cfg.Entries || room-list.Len() < len(e)+100 {
			fmt.Fprintf(&list, "(and %d more; the limit is %d entries, or less where no room is left: name a folder in it, or "+
				"a pattern)\n", len(entries)-i, s.cfg.Entries)
			break
		}
		list.WriteString(e)
	}
	s.add(section{text: list.String(), kind: listing})
}

// writeBehind says that a column is behind the end of a line.
func (s *Session) writeBehind(line int, file string, column int) {
	s.write("(line %d of %q ends before byte %d)\n", line, file, column)
}

// read shows lines of a file.
func (s *Session) read(r Request, room int) error {
	start := max(r.Start, 1)
	lines := s.cfg.RangeLines
	if r.End > 0 {
		lines = min(lines, max(r.End-start+1, 1))
	}
	most := int64(min(s.cfg.RangeBytes, room-300))
	name := s.named(r.Text)
	d, err := s.cfg.Reader.Range(name, start, r.Column, lines, most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.write("(there is no file %q%s)\n", clip.Bytes(r.Text, s.cfg.QueryBytes), s.similar(r.Text))
		return nil
	case errors.Is(err, pack.ErrRange):
		f, _ := s.cfg.Reader.File(name)
		if r.Column > 0 && int64(start) <= f.Lines {
			s.writeBehind(start, name, r.Column)
			return nil
		}
		s.write("(%q has %s)\n", name, human.Count(f.Lines, "line"))
		return nil
	case err != nil:
		return err
	}
	f, _ := s.cfg.Reader.File(name)
	if d.Text == "" && r.Column > 0 {
		s.writeBehind(start, name, r.Column)
		return nil
	}
	end := d.EndLine()
	cut := !strings.HasSuffix(d.Text, "\n") && (int64(end) < f.Lines || int64(len(d.Text)) >= most)
	s.show(excerpt{Document: d, cut: cut})
	if cut && d.Text != "" && !strings.Contains(d.Text, "\n") {
		s.write("(cut within line %d: READ %s:%d:%d goes on)\n", start, name, start, max(r.Column, 1)+len(d.Text))
		return nil
	}
	if int64(end) < f.Lines && (r.End == 0 || end < r.End) {
		s.write("(cut behind line %d of %d: a range has at most %d lines and %d bytes; READ %s:%d- goes on)\n", end,
			f.Lines, s.cfg.RangeLines, s.cfg.RangeBytes, name, end+1)
	}
	return nil
}

// named returns the name of the one file that a shortened name stands for.
func (s *Session) named(name string) string {
	if _, ok := s.cfg.Reader.File(name); ok {
		return name
	}
	found := s.ending(name)
	if len(found) != 1 {
		return name
	}
	return found[0]
}

// ending returns the files whose names end with a name, at most three.
func (s *Session) ending(name string) []string {
	var out []string
	suffix := "/" + strings.TrimPrefix(strings.TrimPrefix(name, "./"), "/")
	for _, f := range s.files {
		if strings.HasSuffix("/"+f.Name, suffix) && len(out) < 3 {
			out = append(out, f.Name)
		}
	}
	return out
}

// similar names files that may have been meant.
func (s *Session) similar(name string) string {
	if found := s.ending(name); len(found) > 0 {
		return "; there is " + strings.Join(found, ", ")
	}
	base := name[strings.LastIndexByte(name, '/')+1:]
	var names []string
	for _, f := range s.files {
		if len(names) < 10_000 {
			names = append(names, f.Name[strings.LastIndexByte(f.Name, '/')+1:])
		}
	}
	if near, ok := nearest.ByEdits(base, names); ok {
		return "; there is " + strings.Join(s.ending(near), ", ")
	}
	return ""
}

// Shown returns the text that the model was shown, neighbouring lines of a file as one
// document.
func (s *Session) Shown() []model.Document {
	list := slices.Clone(s.shown)
	slices.SortStableFunc(list, func(a, b excerpt) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.StartLine, b.StartLine))
	})
	var joined []excerpt
	for _, d := range list {
		if n := len(joined) - 1; n >= 0 && joined[n].File == d.File {
			if both, ok := join(joined[n], d); ok {
				joined[n] = both
				continue
			}
		}
		joined = append(joined, d)
	}
	out := make([]model.Document, len(joined))
	for i, d := range joined {
		out[i] = d.Document
	}
	return out
}

// join returns the lines of two excerpts of a file as one if the second begins within the
// first or right behind it. Lines that both have must be the same: they are not if one
// was cut.
func join(a, b excerpt) (excerpt, bool) {
	first, second := lines(a.Text), lines(b.Text)
	at := b.StartLine - a.StartLine
	if at > len(first) || at == len(first) && a.cut || b.StartColumn != 0 {
		return a, false
	}
	common := min(len(first)-at, len(second))
	if !slices.Equal(first[at:at+common], second[:common]) {
		return a, false
	}
	if common < len(second) {
		a.Text, a.cut = strings.Join(append(slices.Clone(first), second[common:]...), "\n"), b.cut
	}
	return a, true
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }
