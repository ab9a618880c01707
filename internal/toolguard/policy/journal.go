package policy

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/internal/workspace"
)

// Limits of a journal.
const (
	maxTarget = 300
	// maxLine is the maximum length of a line that is read.
	maxLine = 256 << 10
)

// Kinds of lines.
const (
	// Asked: the agent asked before the call. Seen: it did not. Ended: the call was made.
	Asked = "asked"
	Seen  = "seen"
	Ended = "ended"
)

// Line is a line of a journal: a call, judged or not.
type Line struct {
	Risky
	Iteration int    `json:"iteration"`
	What      string `json:"what"`
	// Wanted are the permits that the call needs.
	Wanted []string `json:"wanted,omitempty"`
}

// NewLine returns a line about a call, judged or not.
func NewLine(what string, iteration int, c *agent.ToolCall, j *Judgement) Line {
	target := cmp.Or(c.Command, strings.Join(c.Paths[:min(len(c.Paths), 1)], ""), c.Title)
	l := Line{Iteration: iteration, What: what, Risky: Risky{At: time.Now().UTC(), CallID: clip.Bytes(c.ID, maxTarget),
		Tool: clip.Bytes(cmp.Or(c.Name, string(c.Kind)), maxTarget), Target: clip.Bytes(target, maxTarget)}}
	if j != nil && len(j.Findings) > 0 {
		f := &j.Findings[0]
		l.Target, l.Pattern, l.Level = clip.Bytes(f.Target, maxTarget), f.Pattern, f.Level
	}
	return l
}

// Risky is a tool call that can do harm, and its answer; without a pattern it cannot do
// harm.
type Risky struct {
	At time.Time `json:"timestamp"`
	// CallID is the agent's ID of the call.
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool"`
	Target string `json:"target"`
	// Pattern and Level are those of the worst risk; empty without a risk.
	Pattern risk.Pattern `json:"risk_pattern,omitempty"`
	Level   risk.Level   `json:"risk_level,omitempty"`
	// Answer is the answer; empty if the agent did not ask.
	Answer risk.Answer `json:"answer,omitempty"`
	// Snapshot was taken before the call; empty if none was taken.
	Snapshot workspace.ID `json:"snapshot_path,omitempty"`
	// After is what the call did to tests; nil if it was not checked.
	After *Evidence `json:"after,omitempty"`
}

// Journal is an open tool-calls.jsonl. Its methods must not be called concurrently.
// Several processes may append to one file, because each line is one write at its end.
//
// When Append returns, the line survives the death of the process, not a power loss.
type Journal struct{ file *os.File }

// OpenJournal opens or creates a journal. A last line that a crash cut off is terminated.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal of tool calls: %w", err)
	}
	info, err := f.Stat()
	last := []byte{'\n'}
	if err == nil && info.Size() > 0 {
		_, err = f.ReadAt(last, info.Size()-1)
	}
	if err == nil && last[0] != '\n' {
		_, err = f.WriteString("\n")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal of tool calls: %w", err), f.Close())
	}
	return &Journal{f}, nil
}

// Append writes a line.
func (j *Journal) Append(l *Line) error {
	doc, err := json.Marshal(l)
	if err == nil {
		_, err = j.file.Write(append(doc, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write journal of tool calls: %w", err)
	}
	failpoint.Hit("toolcall.appended")
	return nil
}

// Close closes the file. If another program removed it meanwhile and its folder exists, its lines are
// written to a new one.
func (j *Journal) Close() error { return errors.Join(j.restore(), j.file.Close()) }

func (j *Journal) restore() error {
	own, err := j.file.Stat()
	if err != nil {
		return err
	}
	path := j.file.Name()
	if now, err := os.Stat(path); err == nil && os.SameFile(own, now) {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return atomicfile.Write(path, 0o600, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(j.file, 0, own.Size()))
		return err
	})
}

// ReadJournal reads the lines from an offset on, and returns the offset after the last
// complete one. A missing journal has no lines; invalid lines are skipped.
func ReadJournal(path string, from int64) (lines []Line, next int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, from, nil
	}
	if err != nil {
		return nil, from, fmt.Errorf("read journal of tool calls: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, from, fmt.Errorf("read journal of tool calls: %w", err)
	}
	r := bufio.NewReaderSize(f, maxLine)
	long := int64(0) // bytes read of a line that is too long
	for next = from; ; {
		text, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long += int64(len(text))
			continue
		case errors.Is(err, io.EOF):
			return lines, next, nil
		case err != nil:
			return lines, next, fmt.Errorf("read journal of tool calls: %w", err)
		}
		next += long + int64(len(text))
		var l Line
		if long == 0 && json.Unmarshal(bytes.TrimSpace(text), &l) == nil && l.What != "" {
			lines = append(lines, l)
		}
		long = 0
	}
}
