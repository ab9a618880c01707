package pipe

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
)

// MaxFrameBytes is the longest frame: a request, or the end of a block with its output and the
// values of its variables.
const MaxFrameBytes = engine.MaxRequestBytes + 16<<20

// Message is what the host sends.
type Message struct {
	Type  string `json:"type"` // init, exec, reply or set
	Code  string `json:"code,omitempty"`
	Clock int64  `json:"clock"` // in microseconds since 1970
	Seed  uint64 `json:"seed"`

	Value json.RawMessage `json:"value,omitempty"`
	Err   string          `json:"err,omitempty"`
	Vars  []Variable      `json:"vars,omitempty"`
	// History are further messages of the conversation.
	History []engine.Message `json:"history,omitempty"`

	Contents    *Contents         `json:"contents,omitempty"`
	Tools       []string          `json:"tools,omitempty"`
	LazyBytes   int64             `json:"lazy_bytes,omitempty"`
	KeepNames   bool              `json:"keep_names,omitempty"`
	Reference   *engine.Reference `json:"reference,omitempty"`
	MaxOutput   int               `json:"max_output,omitempty"`
	MaxVar      int               `json:"max_var,omitempty"`
	MaxRequest  int               `json:"max_request,omitempty"`
	MaxAnswer   int               `json:"max_answer,omitempty"`
	MemoryBytes int64             `json:"memory_bytes,omitempty"`
	FileBytes   int64             `json:"file_bytes,omitempty"`
	CPUSeconds  int64             `json:"cpu_seconds,omitempty"`
	Processes   int               `json:"processes,omitempty"`
	Attempts    []Attempt         `json:"attempts,omitempty"`
	// Work is the working folder to be made, if it is not that in which the process starts.
	Work string `json:"work,omitempty"`
}

// Variable is a variable that is set.
type Variable struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Contents are those of the session.
type Contents struct {
	Text  *engine.File  `json:"text,omitempty"`
	Files []engine.File `json:"files,omitempty"`
}

// Answer is what the process sends.
type Answer struct {
	Type     string          `json:"type"` // ready, request, done or ok
	Function string          `json:"function,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"`
	Done     *End            `json:"done,omitempty"`
	// Outcomes are those of the attempts, in an answer of type ready.
	Outcomes []Outcome `json:"outcomes,omitempty"`
}

// End is the end of a block. Values are strings that hold JSON.
type End struct {
	Output       string          `json:"output"`
	OutputBytes  int64           `json:"output_bytes"`
	OutputSHA256 string          `json:"output_sha256"`
	Failure      *engine.Failure `json:"failure"`
	Errors       string          `json:"errors,omitempty"`
	Draft        string          `json:"draft"`
	Gone         []string        `json:"gone"`
	Final        *Final          `json:"final"`
	Vars         []Value         `json:"vars"`
}

// Final is a final answer.
type Final struct {
	JSON string `json:"json"`
	Text string `json:"text"`
	By   string `json:"by"`
}

// Value is a variable whose value changed: JSON is its value, if JSON holds it.
type Value struct {
	engine.Var

	JSON *string `json:"json,omitempty"`
}

// errFrame is the cause of an answer that is not of the protocol.
var errFrame = errors.New("not a frame of the protocol")

// readFrame reads a frame into a message or an answer.
func readFrame(r io.Reader, into any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > MaxFrameBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", errFrame, n, MaxFrameBytes)
	}
	// The bytes are read as they come: a wrong length allocates nothing.
	raw, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(raw) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	return nil
}

// writeFrame writes a message or an answer.
func writeFrame(w io.Writer, m any) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, len(raw)+4), uint32(len(raw))) //nolint:gosec // below 4 GiB
	_, err = w.Write(append(frame, raw...))
	return err
}

// Link is the end of the pipe in the process of an engine that is written in Go. One goroutine
// may use it at a time.
type Link struct {
	in  *bufio.Reader
	out io.Writer
}

// NewLink makes a link of the standard streams.
func NewLink(in io.Reader, out io.Writer) *Link { return &Link{bufio.NewReaderSize(in, 64<<10), out} }

// Receive waits for the next message of the host. Its error is io.EOF when the host is gone.
func (l *Link) Receive() (*Message, error) {
	m := new(Message)
	return m, readFrame(l.in, m)
}

// Send sends an answer.
func (l *Link) Send(a *Answer) error { return writeFrame(l.out, a) }
