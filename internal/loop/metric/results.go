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
		return guess(r.Both, cfg)
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
