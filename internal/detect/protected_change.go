package detect

import (
	"cmp"

	"github.com/perdure/perdure/internal/detect/checkconfig"
	"github.com/perdure/perdure/internal/detect/syntax"
)

// protected reports a change of a file of which any change blocks, and keeps the content of
// one that configures checks.
func (r *run) protected(p *pair) {
	c := &p.change
	if c.Old.Path == c.New.Path && string(c.Old.Content) == string(c.New.Content) && c.Old.Kind == c.New.Kind {
		return
	}
	switch {
	case c.Protected != "":
		r.add(Finding{File: p.path, Subject: p.path, Message: "protected file changed: " + c.Protected,
			Evidence: c.Protected}, protectedFile)
	case c.Configures != "" && (c.Old.Kind != Regular || c.New.Kind != Regular):
		r.add(Finding{File: p.path, Subject: p.path, Message: "configuration of checks is no regular file"}, protectedFile)
	case c.Configures != "":
		r.configs = append(r.configs, checkconfig.File{OldPath: c.Old.Path, NewPath: c.New.Path, Class: c.Configures,
			Old: c.Old.Content, New: c.New.Content})
	}
}

// configurations reports what the changed configurations of checks mean.
func (r *run) configurations() {
	for _, c := range checkconfig.Compare(r.configs) {
		f := Finding{File: c.Path, Line: c.Line, Gone: c.Gone, Subject: c.Text,
			Message: c.Text, Evidence: syntax.Clip(cmp.Or(c.Source, c.Text))}
		switch c.Level {
		case checkconfig.Weaker:
			f.Message = "checks weakened: " + c.Text
			r.add(f, protectedFile)
		case checkconfig.Unclear:
			f.Confidence = 0.6
			r.add(f, protectedUnclear)
		default:
			f.Subject = f.File
			r.add(f, protectedEdited)
		}
	}
}
