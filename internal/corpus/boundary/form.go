package boundary

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// HeadBytes is the size of the beginning of a text that determines its form.
const HeadBytes = 16 << 10

// Form is how a text is structured. The zero Form is for blank lines and indentation only.
type Form struct {
	kind  formKind
	lang  *language
	prose *prose
	comma byte
	// stamped is set for logs whose entries begin with a time.
	stamped bool
}

type formKind uint8

const (
	formBlocks formKind = iota
	formProse
	formCode
	formRows
	formLines
	formLog
)

// Find returns the form of a text by the name of its file and its first bytes, at most
// [HeadBytes]. The bytes decide if the name is that of plain text.
func Find(name string, head []byte) Form {
	head = bytes.TrimPrefix(head[:min(len(head), HeadBytes)], []byte(byteOrderMark))
	file := path.Base(strings.ReplaceAll(name, `\`, "/"))
	extension := strings.ToLower(path.Ext(file))
	switch extension {
	case ".jsonl", ".ndjson", ".jsonlines", ".ldjson":
		return Form{kind: formLines}
	case ".csv", ".tsv", ".tab", ".psv":
		return Form{kind: formRows, comma: commaOf(head, extension)}
	case ".log", ".out", ".err":
		return logForm(head)
	case "", ".txt", ".text":
		if f, ok := formByContent(head); ok && !slices.Contains([]string{"README", "LICENSE", "CHANGELOG"}, file) {
			return f
		}
	}
	code, ok := languageForm(func(l *language) bool {
		return extension != "" && slices.Contains(l.extensions, extension) || slices.Contains(l.files, file)
	})
	if ok {
		return code
	}
	table := proseTable()
	if extension == "" {
		extension = ".txt"
	}
	for i := range table {
		if slices.Contains(table[i].extensions, extension) {
			return Form{kind: formProse, prose: &table[i]}
		}
	}
	if strings.Contains(file, ".log.") { // app.log.1
		return logForm(head)
	}
	return Form{}
}

// languageForm returns the form of the first language that matches.
func languageForm(match func(l *language) bool) (Form, bool) {
	table := languageTable()
	for i := range table {
		if match(&table[i]) {
			return Form{kind: formCode, lang: &table[i]}, true
		}
	}
	return Form{}, false
}

// formByContent returns the form of a text whose name does not determine it.
func formByContent(head []byte) (Form, bool) {
	first, _, _ := bytes.Cut(head, []byte{'\n'})
	if rest, ok := bytes.CutPrefix(first, []byte("#!")); ok {
		return interpreted(string(rest))
	}
	if hasPrefix(head, []string{"diff --git ", "commit "}) && bytes.Contains(head, []byte("\ndiff --git ")) ||
		hasPrefix(head, []string{"diff --git "}) {
		return Find(".diff", nil), true
	}
	lines, objects := 0, 0
	for line := range bytes.Lines(head) {
		if !bytes.HasSuffix(line, []byte{'\n'}) {
			break // cut by the end of head
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		lines++
		if line[0] == '{' && line[len(line)-1] == '}' {
			objects++
		}
	}
	if lines > 1 && objects == lines {
		return Form{kind: formLines}, true
	}
	f := logForm(head)
	return f, f.stamped && lines > 4
}

// interpreted returns the form of a program by the line that names its interpreter.
func interpreted(line string) (Form, bool) {
	for _, word := range slices.Backward(strings.Fields(line)) {
		word = strings.TrimRight(path.Base(word), "0123456789.")
		f, ok := languageForm(func(l *language) bool { return slices.Contains(l.names, word) })
		if ok {
			return f, true
		}
	}
	return Form{}, false
}

// logForm returns the form of a log, with or without times at its entries.
func logForm(head []byte) Form {
	lines, stamps := 0, 0
	for line := range bytes.Lines(head) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		lines++
		if stamped(line) {
			stamps++
		}
	}
	return Form{kind: formLog, stamped: stamps > 0 && stamps*4 >= lines}
}

// commaOf returns the separator of the fields: of the usual characters the most frequent
// one in the first line.
func commaOf(head []byte, extension string) byte {
	switch extension {
	case ".tsv", ".tab":
		return '\t'
	case ".psv":
		return '|'
	}
	first, _, _ := bytes.Cut(head, []byte{'\n'})
	best, most := byte(','), bytes.Count(first, []byte{','})
	for _, c := range []byte(";\t|") {
		if n := bytes.Count(first, []byte{c}); n > most {
			best, most = c, n
		}
	}
	return best
}

// HasRecords reports whether the text is a table, lines of JSON or a log.
func (f Form) HasRecords() bool {
	return f.kind == formRows || f.kind == formLines || f.kind == formLog
}

// Header returns the length of the first row of a table with its end if the row names the
// columns; 0 if it is data, and for text that is not a table. head is the beginning of
// the text.
func (f Form) Header(head []byte) int {
	if f.kind != formRows {
		return 0
	}
	head = head[:min(len(head), HeadBytes)]
	var found marks
	rows := &rowScanner{out: &found, comma: f.comma}
	at := 0
	for line := range bytes.Lines(head) {
		rows.line(int64(at), bytes.TrimRight(line, "\n"))
		if at += len(line); len(found.list) > 1 || line[len(line)-1] != '\n' {
			break
		}
		if !rows.quoted {
			if isHeader(bytes.TrimPrefix(head[:at], []byte(byteOrderMark)), f.comma) {
				return at
			}
			return 0
		}
	}
	return 0
}

// isHeader reports whether a row names columns: no field is empty or a number.
func isHeader(row []byte, comma byte) bool {
	return !slices.ContainsFunc(bytes.Split(bytes.TrimSpace(row), []byte{comma}), func(field []byte) bool {
		return len(bytes.Trim(bytes.Trim(field, " \t\""), "0123456789.,+-eE")) == 0
	})
}

// scanner returns the scanner for the form.
func (f Form) scanner(out *marks) scanner {
	switch f.kind {
	case formProse:
		return newProseScanner(f.prose, out)
	case formCode:
		return newCodeScanner(f.lang, out)
	case formRows:
		return &rowScanner{out: out, comma: f.comma}
	case formLines:
		return &lineScanner{out: out}
	case formLog:
		return &logScanner{out: out, stamped: f.stamped}
	case formBlocks:
	}
	return &blockScanner{out: out, blank: true}
}
