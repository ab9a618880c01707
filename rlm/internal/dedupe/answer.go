package dedupe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Key is what equal answers have in common; "" when there is no answer.
func Key(text string) string {
	text = Normal(text)
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// answerLine begins the line of a reply that holds its answer, after whatever
// led to it.
var answerLine = lazyregexp.New(`(?i)^[\s*_#>]*(?:final\s+answer|answer)[\s*_]*:[\s*_]*(\S.*)$`)

// Normal makes equal what people would count as the same answer:
//
//   - of a reply with a line "Answer: …" or "Final answer: …" only what follows
//     the last of these counts;
//   - JSON is compared by value: order of keys and blanks do not matter;
//   - a number is compared by value: 1,000 and 1000.0 are equal;
//   - otherwise upper and lower case, forms of the same character (NFKC), runs
//     of white space, quotes and Markdown's emphasis around the answer, and
//     marks at its end (. ! ? , ; :) do not matter.
//
// A reply that says only that there is nothing is "".
func Normal(text string) string {
	text = strings.TrimSpace(text)
	if text == Nothing {
		return ""
	}
	if value, ok := normalValue(text); ok {
		return value
	}
	for line := range strings.SplitSeq(text, "\n") {
		if found := answerLine().FindStringSubmatch(strings.TrimRight(line, " \t\r")); found != nil {
			text = found[1]
		}
	}
	bare := cases.Fold().String(norm.NFKC.String(text))
	bare = clip.OneLine(bare)
	bare = strings.TrimFunc(bare, wrapping)
	bare = strings.TrimRightFunc(bare, func(r rune) bool { return wrapping(r) || strings.ContainsRune(".!?,;:", r) })
	if bare == "" {
		return text // nothing but marks
	}
	if value, ok := normalValue(bare); ok {
		return value
	}
	return bare
}

// wrapping tells what people put around an answer.
func wrapping(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`*_“”‘’«»", r)
}

// plainNumber is a number as people write it, with or without commas between
// thousands.
var plainNumber = lazyregexp.New(`^[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?$`)

// maxNumber bounds the characters of what is compared as a number. (A bound in
// the expression would make it a large one, which every start would pay for.)
const maxNumber = 600

// normalValue is the form in which numbers and JSON are compared.
func normalValue(text string) (string, bool) {
	if len(text) <= maxNumber && plainNumber().MatchString(text) {
		if r, ok := new(big.Rat).SetString(strings.ReplaceAll(text, ",", "")); ok {
			return r.RatString(), true
		}
	}
	if text == "" || !strings.ContainsRune("{[", rune(text[0])) {
		return "", false
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil || dec.More() {
		return "", false
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(value); err != nil { // sorts the keys
		return "", false
	}
	return b.String(), true
}
