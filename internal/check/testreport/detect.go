package testreport

import (
	"bytes"
	"path"
	"strings"
)

// detectBytes is the number of bytes from which Parse detects the format.
const detectBytes = 64 << 10

// Detect returns the format of results from the first bytes of the input (64 KiB are
// enough) and, if these are ambiguous, from the file name; empty if it is unknown.
func Detect(name string, first []byte) Format {
	text := bytes.TrimLeft(bytes.TrimPrefix(first, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case bytes.HasPrefix(text, []byte("<")):
		return detectXML(text)
	case bytes.HasPrefix(text, []byte("{")) && !bytes.Contains(firstLine(text), []byte(`"Action"`)):
		for _, key := range [...]string{`"testResults"`, `"numTotalTests"`, `"numTotalTestSuites"`, `"numFailedTests"`} {
			if bytes.Contains(text, []byte(key)) {
				return Jest
			}
		}
		if bytes.Contains(text, []byte(`"examples"`)) || bytes.Contains(firstLine(text), []byte(`"example_count"`)) {
			return RSpec
		}
	}
	for line := range bytes.Lines(text) {
		if f := detectLine(strings.TrimRight(string(line), "\r\n")); f != "" {
			return f
		}
	}
	if strings.EqualFold(path.Ext(name), ".tap") {
		return TAP
	}
	return ""
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

func detectXML(text []byte) Format {
	switch {
	case bytes.Contains(text, []byte("<TestRun")):
		return TRX
	case bytes.Contains(text, []byte("<testsuite")):
		return JUnit
	}
	return ""
}

func detectLine(line string) Format {
	switch {
	case strings.HasPrefix(line, "{") && strings.Contains(line, `"Action":`) &&
		(strings.Contains(line, `"Package":`) || strings.Contains(line, `"ImportPath":`)):
		return GoTest
	case strings.HasPrefix(line, "TAP version "), tapPlan().MatchString(line),
		strings.HasPrefix(line, "ok ") && !strings.Contains(line, "\t"), // go test's output for people has tabs
		strings.HasPrefix(line, "not ok "):
		return TAP
	case cargoRunning().MatchString(line), cargoBegin().MatchString(line), strings.HasPrefix(line, "   Doc-tests "):
		return Cargo
	}
	return ""
}
