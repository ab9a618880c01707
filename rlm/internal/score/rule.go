// Package score scores answers by rules of one line, in the language of
// github.com/expr-lang/expr, and parses the replies of judges. It calls no model.
package score

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/perdure/perdure/internal/text/clip"
)

const (
	// MaxRuleBytes bounds a rule: it is one line.
	MaxRuleBytes = 4096
	// High is the best score a judge model gives, and that of a rule that is
	// true; the worst, and that of one that is false, is 0.
	High = 100
	// maxShown bounds a value in a message.
	maxShown = 100
)

// Rule scores an answer by an expression. It is safe for concurrent use.
type Rule struct {
	source  string
	program *vm.Program
}

// Input has the variables of a rule, by the names of the tags.
type Input struct {
	// Text is the answer.
	Text string `expr:"text"`
	// Lines are the lines of the text, Words counts its words, Data is the
	// text as JSON, nil when it is none; all three are found by Score.
	Lines []string `expr:"lines"`
	Words int      `expr:"words"`
	Data  any      `expr:"data"`
	// Citations counts the passages and checked quotes that the answer rests on.
	Citations int `expr:"citations"`
	// Prompt is what was asked.
	Prompt string `expr:"prompt"`
}

// ParseRule reads a rule: an expression that is a number, or true or false. The
// error names the column, counted in characters from 1. A rule does not know
// the time, so that it gives the same score each time.
func ParseRule(source string) (*Rule, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, errors.New("it is empty")
	case len(source) > MaxRuleBytes:
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(source), MaxRuleBytes)
	case strings.ContainsAny(source, "\r\n"):
		return nil, errors.New("it has more than one line")
	}
	program, err := expr.Compile(source, expr.Env(Input{}), expr.DisableBuiltin("now"))
	if err != nil {
		return nil, placed(err)
	}
	if t := program.Node().Type(); t != nil && t.Kind() != reflect.Interface && t.Kind() != reflect.Bool &&
		!t.ConvertibleTo(reflect.TypeFor[float64]()) {
		return nil, fmt.Errorf("column 1: it is a %s, and a score is a number, or true or false", t)
	}
	return &Rule{source: source, program: program}, nil
}

// placed returns an error of one line: the problem and its place.
func placed(err error) error {
	if fault, ok := errors.AsType[*file.Error](err); ok {
		return fmt.Errorf("column %d: %s", fault.Column+1, clip.OneLine(fault.Message))
	}
	return errors.New(clip.OneLine(err.Error()))
}

// Score evaluates the rule. The error says, for people, why there is no score.
func (r *Rule) Score(in Input) (float64, error) {
	in.Lines = strings.Split(strings.TrimRight(in.Text, "\r\n"), "\n")
	in.Words = len(strings.Fields(in.Text))
	if err := json.Unmarshal([]byte(in.Text), &in.Data); err != nil {
		in.Data = nil
	}
	value, err := expr.Run(r.program, in)
	if err != nil {
		return 0, placed(err)
	}
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid():
		return 0, errors.New("it has no value")
	case v.Kind() == reflect.Bool && v.Bool():
		return High, nil
	case v.Kind() == reflect.Bool:
		return 0, nil
	case v.CanInt():
		return float64(v.Int()), nil
	case v.CanFloat() && !math.IsNaN(v.Float()) && !math.IsInf(v.Float(), 0):
		return v.Float(), nil
	}
	return 0, fmt.Errorf("its value %s is not a number", clip.Bytes(strings.TrimSpace(fmt.Sprint(value)), maxShown))
}

// String is the rule as it was written.
func (r *Rule) String() string { return r.source }
