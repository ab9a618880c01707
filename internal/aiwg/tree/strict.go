package tree

import (
	"slices"

	"github.com/perdure/perdure/internal/schema"
)

// strict finds what the published schemas refuse in the files of an import. Reading is lenient:
// it takes a null for a missing value, and other things that change nothing in the store but
// are not what the format says. A nil strict finds nothing.
type strict struct {
	checker *schema.Checker
	faults  []fileFault
}

type fileFault struct {
	file   *file
	schema string
	schema.Fault
}

func newStrict() (*strict, error) {
	c, err := schema.NewChecker()
	return &strict{checker: c}, err
}

// check keeps the faults of a file, before its parts are dropped.
func (s *strict) check(f *file) {
	if s == nil {
		return
	}
	kind := schema.KindOf(f.name, f.root)
	kinds := []string{"tasks-file", "task-record", "rlm-task-tree", "rlm-state", "state-checkpoint"}
	if !slices.Contains(kinds, kind) {
		return // those of loops are noted where they are read
	}
	for _, fault := range s.checker.Faults(kind, f.root) {
		s.faults = append(s.faults, fileFault{f, kind, fault})
	}
}

// note notes the faults at lines that no other reason to refuse the import is about.
func (s *strict) note(r *reader) {
	if s == nil {
		return
	}
	type place struct {
		file string
		line int
	}
	noted := make(map[place]bool)
	for _, n := range r.report.Notes {
		if slices.Contains(refusing(), n.Kind) {
			noted[place{n.File, n.Line}] = true
		}
	}
	for _, x := range s.faults {
		line, _ := x.file.lines.Position(x.Offset)
		if noted[place{x.file.name, line}] {
			continue
		}
		field := x.Field
		if field == "" {
			field = "the document"
		}
		r.note(Corrected, x.file, x.Offset, "%s %s (%s)", field, x.Message, x.schema)
	}
}
