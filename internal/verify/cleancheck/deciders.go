package cleancheck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
)

// A check can pass because of a file that decides which interpreter, loader, libraries, tests or
// build it uses, although the code is as before. With such a change a candidate that passed runs
// once more, with the version before of these files. Only tests of the baseline count: a new test
// may need a new setting. If it passes only with the agent's version, a person decides.

// resetDeciders repeats a check that passed with the version before of the deciding files.
func (s *sealing) resetDeciders(ctx context.Context, clean *outcome) error {
	d := s.c.Deciders
	if d == nil || len(d.Put)+len(d.Drop) == 0 || !s.c.Now.Passed || s.v.State != Passed && s.v.State != Partly {
		return nil
	}
	with, err := s.run(ctx, s.c.Of, clean.Report, func(at *Place) error { return s.lay(ctx, at, d.Put, d.Drop) },
		slices.Concat(s.drift.same, s.held()))
	var failed *copyError
	if errors.As(err, &failed) && ctx.Err() == nil {
		s.v.Deciders = Impossible
		s.note("run with the earlier version of files that decide what the check runs impossible: " + failed.Error())
		return nil
	}
	if err != nil {
		return err
	}
	s.v.Deciders = Passed
	if worse := s.needsDeciders(clean, with); len(worse) > 0 {
		paths, described := s.deciding()
		s.v.Deciders = Failed
		s.failed(detect.ProtectedChange, fmt.Sprintf("the check passes only with the agent's version of %s. With the "+
			"version before %s", some(described), fails(worse)), tests(worse), paths)
	}
	return nil
}

// needsDeciders returns the tests of the baseline that pass only with the agent's version of the
// deciding files.
func (s *sealing) needsDeciders(clean, with *outcome) []string {
	worse := s.worse(&clean.Result, with)
	if tests(worse) == nil && len(worse) > 0 && with.Report != nil {
		worse = newFailures(clean.Report, with.Report)
	}
	base := s.c.Baseline.Report
	if base == nil || len(base.Tests) == 0 || tests(worse) == nil || with.Report == nil {
		return worse
	}
	known := outcomes(base)
	if slices.ContainsFunc(worse, func(id string) bool { _, is := known[id]; return is }) || len(base.Broken) > 0 {
		return worse
	}
	d := testreport.Compare(base, with.Report)
	if len(d.Lost)+len(d.NewlyFailing)+len(d.Unrun) > 0 {
		return worse
	}
	return nil
}

// deciding returns the paths of the deciding files that were reset, and the same with what they
// decide.
func (s *sealing) deciding() (paths, described []string) {
	for i := range s.c.Deciders.Deciders {
		if d := &s.c.Deciders.Deciders[i]; !d.Allowed && !d.Adds {
			paths, described = append(paths, d.Path), append(described, d.Described())
		}
	}
	return paths, described
}

// newFailures returns the tests that fail in a run and did not in another one; the command if there
// are none.
func newFailures(clean, with *testreport.Report) []string {
	before := map[string]testreport.Outcome{}
	if clean != nil {
		before = outcomes(clean)
	}
	var names []string
	for i := range with.Tests {
		if t := &with.Tests[i]; t.Outcome.Fails() && !before[t.ID].Fails() {
			names = append(names, t.ID)
		}
	}
	if len(names) == 0 {
		return []string{wholeRun}
	}
	return names
}
