package project

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

var (
	// findingPlace matches the place of a finding: file:12:5, file(12,5), or GitHub's
	// annotations.
	findingPlace = lazyregexp.New(`^\s*(\S.*?):(\d+)(:\d+)?[: ]|^\s*(\S.*?)\((\d+),(\d+)\)\s*:|^::(error|warning) `)
	warningWord  = lazyregexp.New(`(?i)(^::|[:\s\[])(warning|warn|note|info)\b`)
	// continued matches lines that continue the previous finding.
	continued = lazyregexp.New(`(?i):\s*note:|^\s*(note|help):`)
)

// maxFindingLine limits the length of a line.
const maxFindingLine = 1 << 20

// CountFindings counts errors and warnings in the output of a type checker or linter, in
// FormatLines or FormatESLint. Lines without a place are not findings. It is an error if
// the output is not in its format.
func CountFindings(format string, r io.Reader) (findings, warnings int, err error) {
	switch format {
	case FormatLines:
		return countLines(r)
	case FormatESLint:
		return countESLint(r)
	}
	return 0, 0, fmt.Errorf("count findings: unknown format %q", format)
}

func countLines(r io.Reader) (findings, warnings int, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxFindingLine)
	for in.Scan() {
		line := in.Text()
		switch {
		case !findingPlace().MatchString(line) || continued().MatchString(line):
		case warningWord().MatchString(line):
			warnings++
		default:
			findings++
		}
	}
	if err := in.Err(); err != nil {
		return 0, 0, fmt.Errorf("count findings: %w", err)
	}
	return findings, warnings, nil
}

func countESLint(r io.Reader) (findings, warnings int, err error) {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return 0, 0, fmt.Errorf("count findings: %w", errors.Join(err, errors.New("the output is not a list of files")))
	}
	for d.More() {
		var file struct{ ErrorCount, WarningCount int }
		if err := d.Decode(&file); err != nil {
			return 0, 0, fmt.Errorf("count findings: %w", err)
		}
		findings += file.ErrorCount
		warnings += file.WarningCount
	}
	if _, err := d.Token(); err != nil {
		return 0, 0, fmt.Errorf("count findings: %w", err)
	}
	return findings, warnings, nil
}
