package rlm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure/rlm/internal/repl/trajectory"
)

// LogSummary is what a log has.
type LogSummary struct {
	Iterations int    `json:"iterations"`
	Blocks     int    `json:"blocks"`
	Calls      int    `json:"calls"`
	Answer     string `json:"answer"`
}

// CheckLog reads a log, and reports what the public viewer cannot show: it fails with
// CodeInvalid and the number of the line.
func CheckLog(log io.Reader) (s LogSummary, err error) {
	in := trajectory.NewReader(log)
	for {
		it, err := in.Next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, logError(err)
		}
		s.Iterations++
		for i := range it.CodeBlocks {
			r := &it.CodeBlocks[i].Result
			s.Blocks++
			s.Calls += len(r.Calls)
			for k := range r.Calls {
				if c := &r.Calls[k]; c.ExecutionTime == nil || !json.Valid(c.Prompt) {
					return s, logError(&trajectory.LineError{Line: in.Line(),
						Msg: fmt.Sprintf("code block %d, call %d has no prompt or execution_time", i+1, k+1)})
				}
			}
		}
		if it.FinalAnswer != nil {
			s.Answer = it.FinalAnswer.Text
		}
	}
}

// IsLog reports whether a file begins as a log does.
func IsLog(file io.Reader) bool {
	const most = 64 << 10 // of the first line, which can be longer
	return trajectory.Begins(io.LimitReader(file, most))
}
