package metric

import (
	"errors"
	"io"
	"os"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
)

// Results reads the test results of the command; nil if there are none. The error is why
// they cannot be read.
func (r *Ran) Results(root string, command *project.Command, found []project.Found) (*testreport.Report, error) {
	cfg := testreport.Config{Root: root}
	if command.Weak != "" {
		runs, err := command.Runs()
		if err != nil || len(runs) == 0 {
			return guessUnless(r.Both, cfg, err)
		}
		return readProbes(runs, cfg)
	}
	printed := map[project.Stream]*os.File{project.Stdout: r.Stdout, project.Both: r.Both}
	var reports []*testreport.Report
	for _, f := range found {
		if project.IsCoverage(f.Format) {
			continue
		}
		var report *testreport.Report
		var err error
		if out := printed[f.Stream]; out != nil {
			if _, err = out.Seek(0, io.SeekStart); err == nil {
				report, err = testreport.Parse(testreport.Format(f.Format), out, cfg)
			}
		} else {
			report, err = testreport.ParseFiles(testreport.Format(f.Format), f.Files, cfg)
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return testreport.Merge(cfg, reports...)
}

// guessUnless is guess, unless an error is known.
func guessUnless(out *os.File, cfg testreport.Config, err error) (*testreport.Report, error) {
	if err != nil {
		return nil, err
	}
	return guess(out, cfg)
}

// readProbes reads the results of the test runners that the command started. A runner
// without results did not end.
func readProbes(runs []project.Run, cfg testreport.Config) (*testreport.Report, error) {
	var reports []*testreport.Report
	for _, run := range runs {
		if run.File == "" {
			reports = append(reports, &testreport.Report{Reason: run.Kind + " did not end",
				Broken: []testreport.Broken{{Kind: testreport.Incomplete, Message: run.Kind + " did not end"}}})
			continue
		}
		report, err := testreport.ParseFiles(testreport.Format(run.Format), []string{run.File}, cfg)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return testreport.Merge(cfg, reports...)
}

// guess reads results from the output of an unknown command, if it has any.
func guess(out *os.File, cfg testreport.Config) (*testreport.Report, error) {
	const head = 64 << 10
	first := make([]byte, head)
	n, err := out.ReadAt(first, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	format := testreport.Detect(out.Name(), first[:n])
	if format == "" {
		return nil, nil
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return testreport.Parse(format, out, cfg)
}
