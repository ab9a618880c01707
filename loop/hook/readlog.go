package hook

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadLog reads a hook-log.jsonl and hands its records over in order, until
// visit returns false. Lines that are not records (cut off by a crash, too long,
// of another form) are passed over and counted in skipped; empty lines are not.
// It keeps one line in memory. The error is that of r.
func ReadLog(r io.Reader, visit func(Record) bool) (skipped int, err error) {
	in := bufio.NewReaderSize(r, MaxLineBytes)
	for {
		text, err := in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return skipped, fmt.Errorf("read hook log: %w", err)
		}
		var rec Record
		text = bytes.TrimSpace(text)
		switch {
		case long || len(text) > 0 && rec.UnmarshalJSON(text) != nil:
			skipped++
		case len(text) > 0 && !visit(rec):
			return skipped, nil
		}
		if ended {
			return skipped, nil
		}
	}
}

// ReadLogFile reads the log at path, and before it the one that was put aside
// when it had grown to its limit, if there is one; see [ReadLog]. A log that is
// missing is empty.
func ReadLogFile(path string, visit func(Record) bool) (skipped int, err error) {
	more := true
	for _, name := range []string{asideOf(path), path} {
		n, err := readFile(name, func(r Record) bool {
			more = visit(r)
			return more
		})
		skipped += n
		if err != nil || !more {
			return skipped, err
		}
	}
	return skipped, nil
}

func readFile(path string, visit func(Record) bool) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read hook log: %w", err)
	}
	defer f.Close()
	return ReadLog(f, visit)
}
