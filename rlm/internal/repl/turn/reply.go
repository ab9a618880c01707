// Package turn is one turn of a REPL: what a reply of the model holds, and what the model is
// shown. It sends nothing and runs nothing.
//
// [Profile.Parse] finds the blocks of code and the final answer of a reply. [Profile.System],
// [Profile.First] and [Profile.After] write the messages of a conversation, which only grows:
// the same facts give the same bytes, in every process.
package turn

import (
	"slices"
	"strings"
)

// Reply is what a reply holds.
type Reply struct {
	// Blocks are its blocks of code, in their order.
	Blocks []Block
	// Final is a final answer in the text. A reply with code has none: the model cannot know
	// what the code will print.
	Final *Final
	// Notes say what of the reply was not run, or does not count, and what would: for the model.
	Notes []string
}

// Block is a block of code.
type Block struct {
	Code string
	// Line is the number of its first line in the reply, from 1.
	Line int
	// Unclosed is set if the reply ended before the fence was closed.
	Unclosed bool
	// Closing is set for FINAL_VAR in the text behind the code of a reply: its answer counts if
	// nothing of the code raised an exception.
	Closing bool
}

// Parse parses a reply.
func (p *Profile) Parse(reply string) Reply {
	if p.wide {
		return p.parseWide(reply)
	}
	return p.parseFirst(reply)
}

// parseFirst parses a reply as the first versions of the profiles do, whose trees are to do the same
// again. Fences are read as CommonMark has them: three or more backticks or tildes, indented by at most
// three spaces, closed by at least as many of the same.
func (p *Profile) parseFirst(reply string) Reply {
	var r Reply
	var open *fence
	var code, prose []string
	lines := strings.Split(strings.ReplaceAll(reply, "\r\n", "\n"), "\n")
	end := func(unclosed bool) {
		text := strings.Join(code, "\n")
		if p.runs(open.tag) && strings.TrimSpace(text) != "" {
			r.Blocks = append(r.Blocks, Block{Code: text + "\n", Line: open.line + 1, Unclosed: unclosed})
		}
		open, code = nil, nil
	}
	for i, line := range lines {
		f := fenceOf(line)
		switch {
		case open != nil && f.closes(open):
			end(false)
		case open != nil:
			code = append(code, open.unindent(line))
		case f != nil && f.opens():
			open = f
			open.line = i + 1
			prose = append(prose, "") // text before and after does not join
		default:
			prose = append(prose, line)
		}
	}
	if open != nil {
		end(true)
	}
	if len(r.Blocks) == 0 {
		r.Final = findFinal(strings.Join(prose, "\n"))
	}
	return r
}

// runs reports whether blocks with this tag are code to run.
func (p *Profile) runs(tag string) bool { return slices.Contains(p.tags, strings.ToLower(tag)) }

// fence is a line that opens or closes a block.
type fence struct {
	mark   byte
	count  int
	indent int
	info   string
	tag    string // the first word of info
	line   int
}

// fenceOf returns the fence that a line is, nil if it is none.
func fenceOf(line string) *fence {
	rest := strings.TrimLeft(line, " ")
	f := &fence{indent: len(line) - len(rest)}
	if f.indent > 3 || rest == "" || rest[0] != '`' && rest[0] != '~' {
		return nil
	}
	f.mark = rest[0]
	info := strings.TrimLeft(rest, rest[:1])
	if f.count = len(rest) - len(info); f.count < 3 {
		return nil
	}
	f.info = strings.TrimSpace(info)
	f.tag, _, _ = strings.Cut(f.info, " ")
	f.tag = strings.Trim(f.tag, "{}.")
	return f
}

// opens reports whether the fence can open a block.
func (f *fence) opens() bool { return f.mark == '~' || !strings.Contains(f.info, "`") }

// closes reports whether the fence ends the open block.
func (f *fence) closes(open *fence) bool {
	return f != nil && f.mark == open.mark && f.count >= open.count && f.info == ""
}

// unindent removes the indentation of the fence from a line of its block.
func (f *fence) unindent(line string) string {
	n := 0
	for n < f.indent && n < len(line) && line[n] == ' ' {
		n++
	}
	return line[n:]
}
