package loops

import (
	"fmt"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// FitterForTest corrects a document by a schema: state, iteration, checkpoint,
// analytics or a line of the log. It returns nil for an invalid document, and the
// notes.
func FitterForTest() (func(kind string, text []byte) (out []byte, notes []string), error) {
	s, err := loadShapes()
	if err != nil {
		return nil, err
	}
	return func(kind string, text []byte) ([]byte, []string) { return fitForTest(s, kind, text) }, nil
}

func fitForTest(s *shapes, kind string, text []byte) (out []byte, notes []string) {
	v, err := jsontree.Parse(text, jsontree.Options{Partial: true})
	if err != nil {
		notes = append(notes, err.Error())
	}
	if v == nil {
		return nil, notes
	}
	shape := map[string]*shape{"state": s.state, "iteration": s.iteration, "checkpoint": s.checkpoint,
		"analytics": s.analytics, "line": s.forLine(v)}[kind]
	x := &fitter{shape: shape, given: "given-0a0b0c0d", loop: "given-0a0b0c0d",
		note: func(kind string, at *jsontree.Value, format string, args ...any) {
			notes = append(notes, fmt.Sprintf("%s %d: ", kind, at.Start)+fmt.Sprintf(format, args...))
		}}
	if kind != "line" {
		x.fallback = map[string]*jsontree.Value{"version": jsontree.NewString("2.0.0"), "loop_id": jsontree.NewString(x.loop),
			"status": jsontree.NewString("paused"), "iteration": jsontree.NewNumber(0),
			"checkpoint_id": jsontree.NewString("x"), "iterations": {Kind: jsontree.Array}}
	}
	if v = x.document(v); v == nil {
		return nil, notes
	}
	return v.Append(nil), notes
}

// UnpackForTest and PackForTest are those of checkpoints.
func UnpackForTest(packed []byte) ([]byte, error) { return unpack(packed) }

// PackForTest packs a text.
func PackForTest(text []byte) ([]byte, error) { return pack(text) }

// SettingsForTest finds the section of settings and reads it; problem is nothing,
// or what is wrong with the YAML.
func SettingsForTest(text []byte) (section []byte, found []Setting, problem string) {
	from, to := sectionOf(text)
	if from < 0 {
		return nil, nil, ""
	}
	found, fault := readSettings(text[from:to])
	if fault != nil {
		problem = fault.Msg
	}
	return text[from:to], found, problem
}
