package rlm

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"encoding/json"
)

// maxExpressionBytes bounds a rule or predicate: it is one line.
const maxExpressionBytes = 4096

// compileExpression reads a one-line expression over the fields of env. The
// error names the column, counted in characters from 1. The expression does not
// know the time, so that it has the same value each time.
func compileExpression(source string, env any) (*vm.Program, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, errors.New("it is empty")
	case len(source) > maxExpressionBytes:
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(source), maxExpressionBytes)
	case strings.ContainsAny(source, "\r\n"):
		return nil, errors.New("it has more than one line")
	}
	program, err := expr.Compile(source, expr.Env(env), expr.DisableBuiltin("now"))
	var fault *file.Error
	if errors.As(err, &fault) {
		return nil, fmt.Errorf("column %d: %s", fault.Column+1, oneLineOf(fault.Message))
	}
	return program, err
}

func oneLineOf(text string) string { return strings.Join(strings.Fields(text), " ") }

// rule scores an answer by an expression.
type rule struct {
	source  string
	program *vm.Program
}

// ruleInput is what a rule knows of an answer.
type ruleInput struct {
	// Text is the answer, Lines are its lines, Words counts its words.
	Text  string   `expr:"text"`
	Lines []string `expr:"lines"`
	Words int      `expr:"words"`
	// Data is the answer as JSON; nil when it is none.
	Data any `expr:"data"`
	// Citations counts the places the answer rests on.
	Citations int `expr:"citations"`
	// Prompt is what was asked.
	Prompt string `expr:"prompt"`
}

// parseRule reads a rule: an expression that is a number, or true (100) or
// false (0).
func parseRule(source string) (*rule, error) {
	program, err := compileExpression(source, ruleInput{})
	if err != nil {
		return nil, err
	}
	if t := program.Node().Type(); t != nil {
		switch t.Kind() {
		case reflect.Interface, reflect.Bool:
		default:
			if !t.ConvertibleTo(reflect.TypeFor[float64]()) {
				return nil, fmt.Errorf("column 1: it is a %s, and a score is a number, or true or false", t)
			}
		}
	}
	return &rule{source: source, program: program}, nil
}

// score evaluates the rule. The error says, for people, why there is no score.
func (r *rule) score(prompt string, p *part) (float64, error) {
	in := ruleInput{Text: p.text, Lines: strings.Split(strings.TrimRight(p.text, "\r\n"), "\n"), Words: len(strings.Fields(p.text)),
		Citations: len(p.data.Citations), Prompt: prompt}
	if raw, err := compactJSON(p.text); err == nil {
		_ = json.Unmarshal(raw, &in.Data) // it is JSON
	}
	value, err := expr.Run(r.program, in)
	var fault *file.Error
	if errors.As(err, &fault) {
		return 0, fmt.Errorf("column %d: %s", fault.Column+1, oneLineOf(fault.Message))
	}
	if err != nil {
		return 0, err
	}
	v := reflect.ValueOf(value)
	switch {
	case !v.IsValid():
		return 0, errors.New("it has no value")
	case v.Kind() == reflect.Bool:
		if v.Bool() {
			return maxScore, nil
		}
		return 0, nil
	case v.CanInt():
		return float64(v.Int()), nil
	case v.CanFloat() && !math.IsNaN(v.Float()) && !math.IsInf(v.Float(), 0):
		return v.Float(), nil
	}
	return 0, fmt.Errorf("its value %s is not a number", shorten(fmt.Sprint(value), shownProblem))
}
