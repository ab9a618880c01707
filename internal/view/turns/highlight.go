package turns

import (
	"regexp"
	"strings"
)

// Part is a part of code with its class: keyword, string, comment, number, or "" for others.
type Part struct{ Class, Text string }

// Highlight divides Python or Starlark code into parts for colours. It knows the words of the
// language, not its grammar; the parts together are the code.
func Highlight(code string) []Part {
	classes := []string{"", "comment", "string", "number", "keyword"}
	tokens := regexp.MustCompile(`(#[^\n]*)|` +
		`((?i:\b[rbfu]{1,2})?(?s:"""(?:[^\\]|\\.)*?"""|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))|` +
		`(\b\d[\d_]*(?:\.\d+)?\b)|` +
		`(\b(?:` + strings.Join(keywords(), "|") + `)\b)`)
	var parts []Part
	from := 0
	for _, at := range tokens.FindAllStringSubmatchIndex(code, -1) {
		if at[0] > from {
			parts = append(parts, Part{"", code[from:at[0]]})
		}
		for class := 1; class < len(classes); class++ {
			if at[2*class] >= 0 {
				parts = append(parts, Part{classes[class], code[at[0]:at[1]]})
			}
		}
		from = at[1]
	}
	if from < len(code) {
		parts = append(parts, Part{"", code[from:]})
	}
	return parts
}

func keywords() []string {
	return []string{"and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
		"except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass",
		"raise", "return", "try", "while", "with", "yield", "True", "False", "None"}
}
