package rlm

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// language says where texts of a kind are best cut. A further language is a
// further line of the table.
type language struct {
	extensions []string
	// headings is set for texts in which lines like "## Title" begin a section.
	headings bool
	// declarations begin lines that declare something at the top level.
	declarations []string
}

var languages = [...]language{
	{extensions: []string{"", ".md", ".markdown", ".mdx", ".qmd", ".rmd", ".txt", ".text"}, headings: true},
	{extensions: []string{".go"}, declarations: []string{"func ", "type ", "var ", "const "}},
	{extensions: []string{".py", ".pyi"}, declarations: []string{"def ", "class ", "async def ", "@"}},
	{
		extensions:   []string{".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts"},
		declarations: []string{"function ", "async function ", "class ", "export ", "interface ", "type "},
	},
	{extensions: []string{".rs"}, declarations: []string{"fn ", "pub ", "impl", "struct ", "enum ", "trait ", "mod ", "#["}},
	{
		extensions:   []string{".java", ".kt", ".scala", ".cs", ".swift"},
		declarations: []string{"public ", "private ", "protected ", "class ", "interface ", "enum ", "fun ", "func ", "object ", "@"},
	},
	{
		extensions:   []string{".c", ".h", ".cc", ".cpp", ".hpp", ".m"},
		declarations: []string{"static ", "struct ", "class ", "enum ", "typedef ", "namespace ", "template"},
	},
	{extensions: []string{".rb", ".php", ".ex", ".lua", ".sh"}, declarations: []string{"def ", "class ", "module ", "function ", "local function "}},
}

// languageOf tells the kind of a text by the name of its file. A kind that is
// not in the table is cut at paragraphs.
func languageOf(name string) language {
	extension := strings.ToLower(path.Ext(path.Base(strings.ReplaceAll(name, `\`, "/"))))
	for i := range languages {
		if slices.Contains(languages[i].extensions, extension) {
			return languages[i]
		}
	}
	return language{}
}

// Ranks of the places where a text can be cut: before a line that …
const (
	rankLine        = iota // is any line
	rankParagraph          // follows a blank line
	rankDeclaration        // declares something
	rankBlock              // follows a blank line and is not indented: a declaration with its comment
	rankSection            // is a heading
	rankChapter            // is a heading of the first or second level
)

// rank says how well a text is cut before a line.
func (l language) rank(line []byte, afterBlank bool) int {
	level := 0
	if l.headings {
		level = headingLevel(line)
	}
	switch {
	case level == 1 || level == 2:
		return rankChapter
	case level > 0:
		return rankSection
	case afterBlank && !l.headings && topLevel(line):
		return rankBlock
	case l.declares(line):
		return rankDeclaration
	case afterBlank:
		return rankParagraph
	default:
		return rankLine
	}
}

func (l language) declares(line []byte) bool {
	for _, d := range l.declarations {
		if bytes.HasPrefix(line, []byte(d)) {
			return true
		}
	}
	return false
}

// headingLevel is 1 to 6 for a Markdown heading, else 0.
func headingLevel(line []byte) int {
	level := 0
	for level < len(line) && line[level] == '#' {
		level++
	}
	if level > 6 || level == len(line) || line[level] != ' ' {
		return 0
	}
	return level
}

// topLevel tells lines that are neither indented nor the end of a block.
func topLevel(line []byte) bool {
	return len(line) > 0 && bytes.IndexByte([]byte(" \t\r})];"), line[0]) < 0
}

// bestCut returns the place from earliest to latest in text before whose line it
// is cut best, the last of equally good ones; -1 when no line begins there.
func (l language) bestCut(text []byte, earliest, latest int) int {
	best, bestRank := -1, -1
	for limit := latest; ; {
		end := bytes.LastIndexByte(text[:limit], '\n')
		if end < 0 || end+1 < earliest {
			return best
		}
		line, _, _ := bytes.Cut(text[end+1:], []byte{'\n'})
		if rank := l.rank(line, blankBefore(text[:end])); rank > bestRank {
			best, bestRank = end+1, rank
		}
		limit = end
	}
}

// blankBefore tells whether the last line of text, whose beginning is known to
// be in it, is blank.
func blankBefore(text []byte) bool {
	start := bytes.LastIndexByte(text, '\n')
	return start >= 0 && len(bytes.TrimSpace(text[start+1:])) == 0
}
