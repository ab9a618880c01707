package detect

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// tidied reports whether data lost only its difficult details: blanks, empty lines,
// quotes, capitals, order or lines. In formats that programs lay out, only the order and
// the lines count.
func tidied(old, now *Version) bool {
	if len(old.Content) == 0 || len(now.Content) == 0 || len(old.Content) > maxTidied || plainOutput(now.Path) {
		return false
	}
	was, is := linesOf(old), linesOf(now)
	if len(was) > len(is) && within(is, was) || permuted(was, is) {
		return true
	}
	if laidOut(now.Path) {
		return false
	}
	for _, lines := range [][][]byte{was, is} {
		for i := range lines {
			lines[i] = bare(lines[i])
		}
	}
	empty := func(line []byte) bool { return len(line) == 0 }
	return slices.EqualFunc(slices.DeleteFunc(was, empty), slices.DeleteFunc(is, empty), bytes.Equal)
}

// relaid reports whether only the layout changed: of code, or of data in a format in which
// blanks are insignificant.
func relaid(old, now *Version, code bool) bool {
	if !code && !laidOut(now.Path) || len(old.Content) > maxTidied {
		return false
	}
	words := func(c rune) rune {
		if unicode.IsSpace(c) || strings.ContainsRune(",;'\"()", c) {
			return -1
		}
		return c
	}
	return bytes.Equal(bytes.Map(words, old.Content), bytes.Map(words, now.Content))
}

// maxTidied is the maximum size of a file that tidied compares.
const maxTidied = 256 << 10

// plainOutput reports whether a file is output of a program under test.
func plainOutput(name string) bool {
	return outputFile().MatchString(name)
}

var outputFile = lazyregexp.New(`\.(?:snap|out|stderr|stdout)$|(?i)golden|expected|snapshot|approved|output`)

// laidOut reports whether blanks and empty lines are insignificant in a format.
func laidOut(name string) bool {
	return slices.Contains([]string{".json", ".json5", ".xml", ".html", ".yaml", ".yml", ".toml", ".svg"}, path.Ext(name))
}

func linesOf(v *Version) [][]byte {
	lines := bytes.Split(v.Content, []byte("\n"))
	for i, line := range lines {
		lines[i] = bytes.TrimSuffix(line, []byte("\r"))
	}
	return lines
}

// within reports whether a is a subsequence of b.
func within(a, b [][]byte) bool {
	for _, line := range b {
		if len(a) > 0 && bytes.Equal(a[0], line) {
			a = a[1:]
		}
	}
	return len(a) == 0
}

// permuted reports whether lines that occur once in both are in another order.
func permuted(was, is [][]byte) bool {
	at := make(map[string]int, len(was))
	for i, line := range was {
		if _, twice := at[string(line)]; twice || len(line) < minOrdered {
			at[string(line)] = -1
			continue
		}
		at[string(line)] = i
	}
	last, moved := -1, false
	for _, line := range is {
		i, ok := at[string(line)]
		if !ok || i < 0 {
			continue
		}
		moved = moved || i < last
		last = max(last, i)
	}
	return moved
}

// minOrdered is the minimum length of a line whose position counts: brackets occur
// anywhere.
const minOrdered = 6

// bare returns a line in lower case without blanks and quotes.
func bare(line []byte) []byte {
	return bytes.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '"' || c == '\'' || c == '\ufeff' {
			return -1
		}
		return unicode.ToLower(c)
	}, line)
}
