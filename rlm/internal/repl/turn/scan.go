package turn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// scanner reads a reply line by line: code in fences and calls of tools, and the text between them.
type scanner struct {
	profile *Profile
	text    string
	at      int // the beginning of the line that is read next
	line    int // its number, from 1

	blocks  []Block
	prose   []string // the text without code, by line
	behind  []string // the part of prose behind the last block
	last    string   // the last line of text that is not blank
	skipped []string // the languages of blocks that are not run
	claimed bool     // the reply states an output behind its code
	ignored bool     // there is code behind that
	cut     bool     // code stands within FINAL( … )
	// searches and decodings bound the work that is done again for a reply.
	searches, decodings int
	hasFinal            bool
	parenthesis         int // see lastParenthesis; 0 if it is not known
}

// The most searches of a reply for the end of a string, and the most tries to read JSON in it.
const (
	maxSearches  = 5
	maxDecodings = 8
)

// parseWide parses a reply with all forms of code that models write.
func (p *Profile) parseWide(reply string) Reply {
	s := &scanner{profile: p, text: strings.ReplaceAll(reply, "\r\n", "\n"), line: 1,
		hasFinal: strings.Contains(reply, "FINAL")}
	for s.at < len(s.text) {
		if !s.takeFence() && !s.takeCall() {
			s.passLine()
		}
	}
	return s.reply()
}

// reply returns what was found.
func (s *scanner) reply() Reply {
	r := Reply{Blocks: s.blocks}
	if len(s.skipped) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("Not run: %s. Only blocks of code tagged repl (or python) are run.",
			strings.Join(s.skipped, ", ")))
	}
	f, note := s.final()
	if s.ignored || s.claimed && f != nil {
		note = ""
		r.Notes = append(r.Notes, "Your reply states an output that no code had printed. What follows that was neither "+
			"run nor read: wait for the output of your code.")
	}
	if s.cut {
		r.Notes = append(r.Notes, "Code within FINAL( … ) is not run, and such a FINAL does not count: put a long text "+
			"into a variable and write FINAL_VAR(name).")
		return r
	}
	switch {
	case len(s.blocks) == 0:
		r.Final = f
	case s.claimed:
	case f != nil && f.Variable:
		r.Blocks = append(r.Blocks, Block{Code: "FINAL_VAR(" + f.Text + ")\n", Line: s.line, Closing: true})
	case f != nil:
		note = "FINAL in the text does not count in a reply with code: set the answer in the code, or write FINAL in a " +
			"later reply."
	}
	if note != "" {
		r.Notes = append(r.Notes, note)
	}
	return r
}

// final returns the final answer in the text: behind the code, if there is any.
func (s *scanner) final() (*Final, string) {
	if !s.hasFinal {
		return nil, ""
	}
	text := s.prose
	if len(s.blocks) > 0 {
		text = s.behind
	}
	return readFinal(strings.Join(text, "\n"))
}

// current returns the line that is read next, and the offset behind it.
func (s *scanner) current() (line string, next int) {
	end := strings.IndexByte(s.text[s.at:], '\n')
	if end < 0 {
		return s.text[s.at:], len(s.text)
	}
	return s.text[s.at : s.at+end], s.at + end + 1
}

// skipTo continues at an offset.
func (s *scanner) skipTo(next int) {
	next = min(max(next, s.at+1), len(s.text))
	s.line += strings.Count(s.text[s.at:next], "\n")
	s.at = next
}

// passLine takes a line as text.
func (s *scanner) passLine() {
	line, next := s.current()
	s.write(line)
	s.skipTo(next)
}

// write adds a line to the text.
func (s *scanner) write(line string) {
	if len(s.blocks) > 0 && claims(line) {
		s.claimed = true
	}
	if strings.TrimSpace(line) != "" {
		s.last = line
	}
	s.prose = append(s.prose, line)
	s.behind = append(s.behind, line)
}

// add adds a block that is to be run.
func (s *scanner) add(code string, line int, unclosed bool) {
	code = withoutPrompts(code)
	if strings.TrimSpace(code) == "" {
		return
	}
	if s.claimed {
		s.ignored = true
		return
	}
	s.blocks = append(s.blocks, Block{Code: strings.TrimRight(code, "\n") + "\n", Line: line, Unclosed: unclosed})
	s.behind = nil
}

// skip notes a block that is not run.
func (s *scanner) skip(language string) {
	const most, longest = 5, 40
	language = "a block of " + clip.Prefix(strings.TrimSpace(language), longest)
	if len(s.skipped) < most && !slices.Contains(s.skipped, language) {
		s.skipped = append(s.skipped, language)
	}
}

var claim = lazyregexp.New(`(?i)^[\s*_#>]*((repl|code|expected|execution|console|printed)[ _])?` +
	`(outputs?|results?|stdout|observation)( of (block|the code)[ \d]*)?[*_\s]*:`)

// claims reports whether a line states the output of code.
func claims(line string) bool {
	const longest = 400
	line = line[:min(len(line), longest)]
	for _, tag := range claimTags() {
		if strings.Contains(line, tag) {
			return true
		}
	}
	return claim().MatchString(line)
}

// claimTags are the marks with which models write the output of tools.
func claimTags() []string {
	return []string{"<function_results>", "<function_result>", "<tool_response>", "<tool_result>", "<tool_results>",
		"<tool_output>", "<tool▁outputs▁begin>", "<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>", "[TOOL_RESULTS]",
		"<observation>", "<|observation|>"}
}

// tagRuns reports whether the info string of a fence names a language that is run, and the name.
func tagRuns(info string) (run bool, name string) {
	info = strings.ToLower(strings.Trim(strings.TrimSpace(info), "{}"))
	name, _, _ = strings.Cut(strings.TrimLeft(info, ". "), " ")
	name = strings.Trim(name, "{}.,;")
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune(":,/{", r) }) {
		switch part {
		case "repl", "python", "py", "python3", "py3", "python2", "ipython", "ipython3", "pycon", "python-repl", "pyrepl",
			"tool_code", "tool-code", "starlark", "jupyter", "pysource":
			return true, name
		}
		return strings.HasPrefix(part, "python3."), name
	}
	return true, ""
}
