package loops

import "fmt"

// FitterForTest brings texts into the form of a schema: state, iteration,
// checkpoint, analytics or a line of the log. It returns nil for what is none of
// it, and what it noted.
func FitterForTest() (func(kind string, text []byte) (out []byte, notes []string), error) {
	s, err := loadShapes()
	if err != nil {
		return nil, err
	}
	return func(kind string, text []byte) ([]byte, []string) { return fitForTest(s, kind, text) }, nil
}

func fitForTest(s *shapes, kind string, text []byte) (out []byte, notes []string) {
	v, fault := parse(text)
	if fault != nil {
		notes = append(notes, fmt.Sprintf("%d: %s", fault.off, fault.what))
	}
	if v == nil {
		return nil, notes
	}
	shape := map[string]*shape{"state": s.state, "iteration": s.iteration, "checkpoint": s.checkpoint,
		"analytics": s.analytics, "line": s.forLine(v)}[kind]
	x := &fitter{shape: shape, given: "given-0a0b0c0d", loop: "given-0a0b0c0d",
		note: func(kind string, at *value, format string, args ...any) {
			notes = append(notes, fmt.Sprintf("%s %d: ", kind, at.off)+fmt.Sprintf(format, args...))
		}}
	if kind != "line" {
		x.fallback = map[string]*value{"version": textValue("2.0.0"), "loop_id": textValue(x.loop),
			"status": textValue("paused"), "iteration": numberValue(0),
			"checkpoint_id": textValue("x"), "iterations": {kind: '['}}
	}
	if v = x.document(v); v == nil {
		return nil, notes
	}
	return v.raw(), notes
}

// ParseForTest parses a text and returns what of it is whole, in its shortest
// form, and where it stops being JSON, -1 when it does not.
func ParseForTest(text []byte) (whole []byte, off int) {
	v, fault := parse(text)
	off = -1
	if fault != nil {
		off = fault.off
	}
	if v == nil {
		return nil, off
	}
	return v.raw(), off
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
		problem = fault.what
	}
	return text[from:to], found, problem
}
