// Package quote reads the quotes of a model's reply and checks them against the
// text that the model was shown. It does not depend on tasks.
//
// # Form
//
// A reply marks a statement with a footnote, and defines the footnote on a line of
// its own: the place, and below it the quoted lines.
//
//	The lease is renewed every ten seconds.[^1]
//
//	[^1]: docs/leases.md:41-42
//	> A worker renews its lease every ten seconds.
//
// A place is a file, with ":LINE" or ":FIRST-LAST" behind it; the form of the frames of
// documents ("FILE" lines FIRST-LAST) is read, too. The quoted lines begin with ">".
package quote

import (
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Limits of a reply. Quotes beyond them are dropped and counted.
const (
	// MaxQuotes is the number of quotes of one reply.
	MaxQuotes = 100
	// MaxBytes is the size of one quote.
	MaxBytes = 8 << 10
)

// Instruction is the text for a model on the form of quotes.
const Instruction = `Support the answer with quotes from the documents. After each statement that a document supports, ` +
	`write a footnote mark such as [^1]. At the end of the reply define each footnote with the place and the quoted ` +
	form

// InstructionApart is Instruction for an answer without marks, such as JSON.
const InstructionApart = `Support the answer with quotes from the documents. Write no footnote marks in the answer. Below ` +
	`the answer write the quotes, each as a footnote with a number, the place and the quoted ` + form

const form = `lines, each line after "> ", exactly as they are in the document:

[^1]: path/of/the/file.txt:10-11
> first quoted line
> second quoted line

Quote the few lines that matter. Do not change, shorten or join quoted lines: quotes that are not in the document are ` +
	`removed from the answer.`

// Quote is a quote as a model wrote it.
type Quote struct {
	// Label is what stands behind ^ in the mark.
	Label string
	// File is the name of the file, Start and End its lines; 0 if the model named none.
	File       string
	Start, End int
	Text       string
}

// definition begins the definition of a footnote.
var (
	definition = lazyregexp.New(`^ {0,3}\[\^([^\]\s]{1,40})\]:[ \t]*(.*)$`)
	place      = lazyregexp.New(`^(.*?)(?::|,?\s+lines?\s+)L?(\d{1,9})(?:\s*(?:-|–|to)\s*L?(\d{1,9}))?$`)
)

// Parse separates the answer of a reply from its quotes. The definitions of footnotes
// are not part of the answer; a definition without quoted lines has an empty text.
func Parse(reply string) (answer string, quotes []Quote) {
	var kept []string
	lines := strings.Split(strings.ReplaceAll(reply, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); {
		found := definition().FindStringSubmatch(lines[i])
		if found == nil {
			kept = append(kept, lines[i])
			i++
			continue
		}
		q := Quote{Label: found[1]}
		q.File, q.Start, q.End = ParsePlace(found[2])
		q.Text, i = quoted(lines, i+1)
		quotes = append(quotes, q)
	}
	return strings.TrimRight(strings.Join(kept, "\n"), " \t\n"), quotes
}

// ParsePlace parses "FILE:FIRST-LAST" and `"FILE" lines FIRST-LAST`.
func ParsePlace(text string) (file string, start, end int) {
	text = strings.TrimSpace(text)
	if found := place().FindStringSubmatch(text); found != nil {
		text = found[1]
		start, _ = strconv.Atoi(found[2]) //nolint:errcheck // digits
		end, _ = strconv.Atoi(found[3])   //nolint:errcheck // digits, or 0 without
		end = max(start, end)
	}
	return strings.Trim(strings.TrimSpace(text), "\"'`*"), start, end
}

// quoted returns the quoted lines from a line on, and the line after them.
func quoted(lines []string, at int) (text string, next int) {
	from := at
	for from < len(lines) && strings.TrimSpace(lines[from]) == "" {
		from++
	}
	var out []string
	for next = from; next < len(lines); next++ {
		line, ok := strings.CutPrefix(strings.TrimLeft(lines[next], " \t"), ">")
		if !ok {
			break
		}
		out = append(out, strings.TrimPrefix(line, " "))
	}
	if len(out) == 0 {
		return "", at
	}
	return strings.Join(out, "\n"), next
}
