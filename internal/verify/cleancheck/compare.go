package cleancheck

import (
	"context"
	"slices"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/text/clip"
)

// shown is what a run of the baseline in a copy shows about a candidate that fails in one.
type shown int

const (
	// canPass: what passes for the baseline in the workspace passes in a copy.
	canPass shown = iota
	// cannotPass: the baseline does not reach its own result in a copy.
	cannotPass
	// nothing: the baseline has nothing that passes, neither here nor there.
	nothing
)

// compare runs the baseline in a copy: tests that fail there, too, do not count. clean is the
// run of the candidate, worse is what fails in it.
func (s *sealing) compare(ctx context.Context, clean *outcome, worse []string) error {
	base, err := s.run(ctx, s.c.Since.From, s.c.Baseline.Report, nil, slices.Concat(s.drift.same, s.drift.heldFiles()))
	if err != nil {
		return err
	}
	if base.problem != "" {
		s.impossible("the setup command fails for the baseline, too: " + base.problem)
		return nil
	}
	counted, by := s.counted(base, worse)
	if by == cannotPass {
		s.impossible(withLastLine("the baseline does not reach its own result in a clean copy either", base.Output))
		return nil
	}
	opens, err := s.passesOpen(ctx)
	if err != nil {
		return err
	}
	if by == nothing {
		s.unconfirmed(clean, opens)
		return nil
	}
	s.failedInCopy(clean, counted, opens)
	return nil
}

// counted returns those of the names that count as worse by a run of the baseline in a copy,
// and what this run shows.
func (s *sealing) counted(base *outcome, worse []string) ([]string, shown) {
	is := &s.c.Baseline
	if is.Report == nil || base.Report == nil {
		switch {
		case is.Passed && base.Passed:
			return worse, canPass
		case is.Passed || is.Report != nil:
			return nil, cannotPass
		}
		return nil, nothing
	}
	lost, was := s.worse(is, base), outcomes(is.Report)
	// A test counts if the baseline's passes in a copy; a new test if all of the baseline's do.
	whole := len(lost) == 0 && is.Report.Counts().Passed > 0
	counted := slices.DeleteFunc(slices.Clone(worse), func(name string) bool {
		return slices.Contains(lost, name) || was[name] != testreport.Passed && !whole
	})
	switch {
	case len(counted) > 0:
		return counted, canPass
	case len(lost) > 0:
		return nil, cannotPass
	}
	return nil, nothing
}

// passesOpen reports whether a candidate that fails in the sandbox passes without it.
func (s *sealing) passesOpen(ctx context.Context) (bool, error) {
	if !s.confined {
		return false, nil
	}
	s.confined = false
	with, err := s.run(ctx, s.c.Of, s.c.Now.Report, nil, slices.Concat(s.drift.same, s.drift.heldFiles()))
	s.confined = true
	return err == nil && len(s.lacks(with)) == 0, err
}

// unconfirmed sets the verdict of a candidate that fails in a copy where the baseline shows
// nothing. It does not pass without the sandbox either, because what it finds outside can be
// the agent's.
func (s *sealing) unconfirmed(clean *outcome, opens bool) {
	why := "it fails there"
	if opens {
		why = "it passes there only with access to the network and to files outside"
	}
	why += ", and the baseline, of which nothing passes in the workspace either, does not show whether it needs more"
	s.impossible(withLastLine(why, clean.Output))
	s.v.Unconfirmed = true
}

// withLastLine adds the last line of an output to a sentence, if it has one.
func withLastLine(sentence, output string) string {
	if last := clip.LastLine(output); last != "" {
		sentence += ": " + last
	}
	return sentence
}

// failedInCopy sets the verdict of a candidate that fails in a copy, in which the baseline
// reaches its own result.
func (s *sealing) failedInCopy(clean *outcome, worse []string, opens bool) {
	kind, why := detect.TestFailure, "the check passes in the workspace and fails in a clean copy: "+some(worse)
	if opens {
		why += ". It passes with the network and with writes outside of the copy"
	}
	if len(s.changedSettings) > 0 {
		kind, s.v.Machine = detect.ValidationBypass, true
		why += ". The " + settingsChanged(s.changedSettings) + ". Clean copies do not use them; approve it if you changed " +
			"them"
	}
	s.failed(kind, why, tests(worse), nil)
	s.v.Differs = s.differences(clean, opens)
}
