// Package notebook turns Jupyter notebooks into plain text: the sources of the cells and the text
// of their outputs, each under a line with the number of the cell. Images, widgets and other data
// for programs are left out and named.
package notebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/human"
)

// MaxBytes is the size of a notebook that is read.
const MaxBytes = 256 << 20

// maxOutput is the length of the text of one output.
const maxOutput = 64 << 10

// document is a notebook of version 3 or 4.
type document struct {
	Version    int    `json:"nbformat"`
	Cells      []cell `json:"cells"`
	Worksheets []struct {
		Cells []cell `json:"cells"`
	} `json:"worksheets"`
	Metadata struct {
		Kernel   struct{ Language, Name string } `json:"kernelspec"`
		Language struct{ Name string }           `json:"language_info"`
	} `json:"metadata"`
}

type cell struct {
	Kind    string   `json:"cell_type"`
	Source  lines    `json:"source"`
	Input   lines    `json:"input"` // version 3
	Level   int      `json:"level"` // of a heading of version 3
	Outputs []output `json:"outputs"`
}

type output struct {
	Kind      string                     `json:"output_type"`
	Text      lines                      `json:"text"`
	Data      map[string]json.RawMessage `json:"data"`
	Name      string                     `json:"ename"`
	Value     string                     `json:"evalue"`
	Traceback lines                      `json:"traceback"`
	// Images and text of version 3.
	PNG  lines `json:"png"`
	JPEG lines `json:"jpeg"`
	SVG  lines `json:"svg"`
	HTML lines `json:"html"`
}

// lines is a text, or a list of parts of one.
type lines string

// UnmarshalJSON reads a text or a list of parts.
func (l *lines) UnmarshalJSON(raw []byte) error {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		*l = lines(strings.Join(list, ""))
		return nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	*l = lines(text)
	return err
}

// errNoNotebook is the error of a file that is not a notebook.
var errNoNotebook = errors.New("it has no cells of a notebook")

// Render returns the text of a notebook. The error says why data is none.
func Render(data []byte) ([]byte, error) {
	var doc document
	if !utf8.Valid(data) {
		return nil, errors.New("it is not in UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, explain(err, len(data))
	}
	cells := doc.Cells
	for _, sheet := range doc.Worksheets {
		cells = append(cells, sheet.Cells...)
	}
	if doc.Version == 0 || len(cells) == 0 && doc.Cells == nil && doc.Worksheets == nil {
		return nil, errNoNotebook
	}
	var b bytes.Buffer
	language := doc.Metadata.Language.Name
	if language == "" {
		language = doc.Metadata.Kernel.Language
	}
	fmt.Fprintf(&b, notebookMark+"%s%s]\n", human.Count(len(cells), "cell"), withPrefix(", ", language))
	for i := range cells {
		cells[i].render(&b, i+1)
	}
	return b.Bytes(), nil
}

// explain returns why a file of some size cannot be read as JSON of a notebook.
func explain(err error, size int) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		if e.Offset >= int64(size) {
			return fmt.Errorf("it ends early, at byte %d", size)
		}
		return fmt.Errorf("it is not valid JSON at byte %d", e.Offset)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("the member %q is not that of a notebook", e.Field)
	}
	return errNoNotebook
}

func withPrefix(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func (c *cell) render(b *bytes.Buffer, number int) {
	fmt.Fprintf(b, "\n[cell %d: %s]\n", number, c.Kind)
	source := string(c.Source) + string(c.Input)
	if c.Level > 0 {
		source = strings.Repeat("#", min(c.Level, 6)) + " " + source
	}
	write(b, withoutData(source))
	for i := range c.Outputs {
		fmt.Fprintf(b, "[cell %d: output]\n", number)
		c.Outputs[i].render(b)
	}
}

// write writes a text of a notebook with a newline at its end. A line that looks like the first one of a
// cell is indented.
func write(b *bytes.Buffer, text string) {
	if strings.Contains(text, cellMark) {
		text = regexp.MustCompile(`(?m)^\[cell \d`).ReplaceAllString(text, " $0")
	}
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

func (o *output) render(b *bytes.Buffer) {
	o.addOldForms()
	text := string(o.Text)
	shown := ""
	for _, kind := range []string{"text/plain", "text/markdown", "text/latex", "text/html"} {
		if raw, ok := o.Data[kind]; ok && text == "" {
			text, shown = textOf(raw), kind
		}
	}
	if o.Name != "" || o.Value != "" {
		text = string(o.Traceback)
		if text == "" {
			text = o.Name + ": " + o.Value
		}
	}
	write(b, shorten(withoutData(plain(text))))
	for _, kind := range slices.Sorted(maps.Keys(o.Data)) {
		if kind != shown && (!strings.HasPrefix(kind, "text/") || shown == "") {
			fmt.Fprintf(b, "[%s of %s, left out]\n", kind, human.Size(int64(len(o.Data[kind]))))
		}
	}
}

// addOldForms adds the data of version 3.
func (o *output) addOldForms() {
	for kind, text := range map[string]lines{"image/png": o.PNG, "image/jpeg": o.JPEG, "image/svg+xml": o.SVG,
		"text/html": o.HTML} {
		if text == "" {
			continue
		}
		if o.Data == nil {
			o.Data = make(map[string]json.RawMessage)
		}
		if raw, err := json.Marshal(string(text)); err == nil {
			o.Data[kind] = raw
		}
	}
}

func textOf(raw json.RawMessage) string {
	var l lines
	if json.Unmarshal(raw, &l) != nil {
		return ""
	}
	return string(l)
}

// plain returns a text as a terminal shows it at last: without colours, and of a line that was
// written again and again the last state.
func plain(text string) string {
	text = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]").ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.Contains(text, "\r") {
		return text
	}
	all := strings.Split(text, "\n")
	for i, line := range all {
		line = strings.TrimRight(line, "\r")
		all[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(all, "\n")
}

const (
	// leastData is the length of encoded data that is left out, leastLine that of its lines.
	leastData = 2048
	leastLine = 60
)

// withoutData replaces encoded data in a text by its size.
func withoutData(text string) string {
	if len(text) < leastData {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		n := dataLen(text)
		if n >= leastData {
			fmt.Fprintf(&b, "[%s of encoded data, left out]", human.Size(int64(n)))
			text = text[n:]
			continue
		}
		n = min(n+1, len(text)) // with the character that ends it
		b.WriteString(text[:n])
		text = text[n:]
	}
	return b.String()
}

// dataLen returns the length of the base64 at the beginning of a text. It may have line breaks
// after long lines.
func dataLen(text string) int {
	line := 0
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=':
			line++
		case c == '\n' && line >= leastLine:
			line = 0
		default:
			return i
		}
	}
	return len(text)
}

// shorten returns the beginning and the end of a long text.
func shorten(text string) string {
	if len(text) <= maxOutput {
		return text
	}
	head, tail := maxOutput*3/4, len(text)-maxOutput/4
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[%s of output, left out]\n%s", text[:head], human.Size(int64(tail-head)), text[tail:])
}
