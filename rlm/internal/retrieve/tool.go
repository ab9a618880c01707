package retrieve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/model"
)

// Tools are the requests as tools of a provider. A call is the line "SEARCH {…}" of a reply, see
// [model.ToolLine]; [Limits.Parse] reads it as the line of text that it stands for.
func (l Limits) Tools() []model.Tool {
	return append([]model.Tool{
		{Name: Search, Description: fmt.Sprintf("Returns the best passages for words in all files, at most %d.", l.Results),
			Parameters: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"query":{"type":"string","description":`+
				`"Words that the text itself may have, at most %d bytes."}},"required":["query"]}`, l.QueryBytes))},
		{Name: List, Description: fmt.Sprintf("Lists the folders and files in a folder, or the files of a pattern, at "+
			"most %d.", l.Entries), Parameters: json.RawMessage(`{"type":"object","properties":{"folder":{"type":"string","description":` +
			`"A folder, or a pattern such as src/**/*_test.go; empty for the top."}},"required":["folder"]}`)},
		{Name: Read, Description: fmt.Sprintf("Returns lines of a file, at most %d lines and %d bytes.", l.RangeLines,
			l.RangeBytes), Parameters: json.RawMessage(`{"type":"object","properties":{"file":{"type":"string"},` +
			`"first":{"type":"integer","description":"The first line, counted from 1."},` +
			`"last":{"type":"integer","description":"The last line."}},"required":["file"]}`)},
	}, l.Custom...)
}

// customRequest reads a call of a tool of the user.
func (l Limits) customRequest(name, argument string) (Request, string) {
	r := Request{Kind: name, Text: strings.TrimSpace(argument)}
	if r.Text == "" {
		r.Text = "{}"
	}
	var compact bytes.Buffer
	if r.Text[0] != '{' || json.Compact(&compact, []byte(r.Text)) != nil {
		return r, fmt.Sprintf("%s takes one JSON object on the same line", name)
	}
	r.Text = compact.String()
	return r, ""
}

// arguments are those of all tools.
type arguments struct {
	Query, Folder, File *string
	First, Last         lineNumber
}

// lineNumber is the number of a line. Some models write it as a string.
type lineNumber int

// UnmarshalJSON implements [json.Unmarshaler]: what is no number of a line is 0.
func (l *lineNumber) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseFloat(string(bytes.Trim(data, `"`)), 64)
	if err != nil || !(n >= 1 && n < 1e9) {
		n = 0
	}
	*l = lineNumber(n)
	return nil
}

// object begins the arguments of a call: text to search for hardly begins like this.
var object = lazyregexp.New(`^\{\s*["}]`)

// call reads the arguments of a call of a tool. called is false for a line of text.
func (l Limits) call(word, argument string) (r Request, problem string, called bool) {
	r.Kind = word
	if !object().MatchString(argument) {
		return r, "", false
	}
	var a arguments
	if err := json.Unmarshal([]byte(argument), &a); err != nil {
		return r, fmt.Sprintf("the arguments of %s are not JSON of its form: %s", word, clip.Bytes(argument, 80)), true
	}
	var text *string
	switch word {
	case Search:
		if text = a.Query; text != nil {
			*text = strings.Join(strings.Fields(*text), " ")
		} else if argument != "{}" {
			return r, "", false // JSON to search for
		}
	case List:
		if text = a.Folder; text == nil {
			text = new("")
		}
	case Read:
		text = a.File
	}
	switch {
	case text == nil:
		return r, fmt.Sprintf("%s has no argument", word), true
	case strings.ContainsAny(*text, "\n\r"):
		return r, fmt.Sprintf("%s has a line break in its argument", word), true
	}
	if r, problem = l.line(word, *text); word == Read && problem == "" && (a.First > 0 || a.Last > 0) {
		r.Text, r.Start, r.End = *text, max(int(a.First), 1), int(a.Last)
	}
	return r, problem, true
}

// otherTool is a line with a call of a tool that does not exist.
var otherTool = lazyregexp.New(`^([A-Za-z_][\w.:-]{0,63}) (\{.*\})$`)

// unknownTool returns the name of the tool that a line calls, empty if it calls none.
func unknownTool(text string) string {
	found := otherTool().FindStringSubmatch(strings.TrimRight(text, " \t\r"))
	if found == nil || !json.Valid([]byte(found[2])) {
		return ""
	}
	return found[1]
}

// withoutCalls returns an answer without the calls of tools behind it: providers send calls apart
// from the text.
func (l Limits) withoutCalls(text string) string {
	for {
		at := strings.LastIndexByte(text, '\n') + 1
		word, argument := l.keyword(text[at:])
		if word == "" || word == answer {
			return text
		}
		if l.isCustom(word) {
			if _, problem := l.customRequest(word, argument); problem != "" {
				return text
			}
		} else if _, _, called := l.call(word, argument); !called {
			return text
		}
		text = strings.TrimSpace(text[:at])
	}
}
