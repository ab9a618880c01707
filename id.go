package perdure

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// TreeID names a tree: "tree-" and 8 hexadecimal digits, unique in the store.
type TreeID string

// TaskID identifies a task in its store: task-0001, task-0002, … It has at least four
// digits and is never reused.
type TaskID int64

// NodeID identifies a task in exported tree files: "task-" and 8 hexadecimal digits. It is
// not the same as the TaskID.
type NodeID uint32

// CallID identifies a journaled call in its store: call-0001, …
type CallID int64

const (
	treePrefix = "tree-"
	taskPrefix = "task-"
	callPrefix = "call-"
)

const hexDigits = "0123456789abcdef"

// ParseTreeID checks the form of a tree's name.
func ParseTreeID(s string) (TreeID, error) {
	digits, ok := strings.CutPrefix(s, treePrefix)
	if !ok || len(digits) != 8 || strings.Trim(digits, hexDigits) != "" {
		return "", &Error{Code: CodeInvalid, Op: "parse tree", Msg: fmt.Sprintf("%q is not a tree ID", s),
			Hint: "a tree ID looks like tree-1a2b3c4d, and a unique beginning of 4 characters is enough; " +
				"`perdure status` lists them"}
	}
	return TreeID(s), nil
}

// ParseLoopID returns the tree and the name in the ID of a loop, fix-tests-1a2b3c4d. It reports whether the
// text has that form; it does not look the tree up.
func ParseLoopID(s string) (tree TreeID, name string, ok bool) {
	at := strings.LastIndexByte(s, '-')
	if at < 1 {
		return "", "", false
	}
	name = s[:at]
	tree, err := ParseTreeID(treePrefix + s[at+1:])
	return tree, name, err == nil && name+"-" != treePrefix && name+"-" != taskPrefix
}

func newTreeID() TreeID { return treeIDOf(randomTree()) }

func randomTree() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint32(b[:])
}

// treeIDOf returns the ID with a number.
func treeIDOf(n uint32) TreeID {
	return TreeID(treePrefix + hex.EncodeToString(binary.BigEndian.AppendUint32(nil, n)))
}

// String returns the written form, task-0001.
func (id TaskID) String() string { return numbered(taskPrefix, int64(id)) }

// MarshalText writes the form of String; the zero value is empty.
func (id TaskID) MarshalText() ([]byte, error) {
	if id == 0 {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText reads the form of String.
func (id *TaskID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = 0
		return nil
	}
	v, err := ParseTaskID(string(b))
	*id = v
	return err
}

// ParseTaskID reads the written form of a task ID.
func ParseTaskID(s string) (TaskID, error) {
	n, ok := parseNumbered(taskPrefix, s)
	if !ok {
		return 0, &Error{Code: CodeInvalid, Op: "parse task", Msg: fmt.Sprintf("%q is not a task ID", s),
			Hint: "a task ID looks like task-0001; `perdure tree TREE` lists them"}
	}
	return TaskID(n), nil
}

// Node returns the task's identity in exported tree files. It is a fixed
// permutation of the store ID, so it is unique in a store without an index.
func (id TaskID) Node() NodeID {
	return NodeID(permute(uint32(id))) //nolint:gosec // the low 32 bits are meant
}

// Task returns the task of a node among the first 2^32 of a store.
func (n NodeID) Task() TaskID { return TaskID(unpermute(uint32(n))) }

// String returns the written form, task-1a2b3c4d.
func (n NodeID) String() string { return fmt.Sprintf("%s%08x", taskPrefix, uint32(n)) }

// MarshalText writes the form of String.
func (n NodeID) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads the form of String.
func (n *NodeID) UnmarshalText(b []byte) error {
	v, err := ParseNodeID(string(b))
	*n = v
	return err
}

// ParseNodeID reads the written form of a node ID.
func ParseNodeID(s string) (NodeID, error) {
	digits, ok := strings.CutPrefix(s, taskPrefix)
	v, err := strconv.ParseUint(digits, 16, 32)
	if !ok || len(digits) != 8 || err != nil || digits != strings.ToLower(digits) {
		return 0, invalidf("parse node", "%q is not a node ID (task-1a2b3c4d)", s)
	}
	return NodeID(v), nil
}

// String returns the written form, call-0001.
func (id CallID) String() string { return numbered(callPrefix, int64(id)) }

// MarshalText writes the form of String; the zero value is empty.
func (id CallID) MarshalText() ([]byte, error) {
	if id == 0 {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText reads the form of String.
func (id *CallID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = 0
		return nil
	}
	n, ok := parseNumbered(callPrefix, string(b))
	if !ok {
		return invalidf("parse call", "%q is not a call ID (call-0001)", b)
	}
	*id = CallID(n)
	return nil
}

func numbered(prefix string, n int64) string { return fmt.Sprintf("%s%04d", prefix, n) }

// parseNumbered accepts exactly what numbered writes.
func parseNumbered(prefix, s string) (int64, bool) {
	digits, ok := strings.CutPrefix(s, prefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ok && err == nil && n > 0 && numbered(prefix, n) == s
}

// permute is a bijection of 32 bits (xor-shifts and odd multipliers are each
// invertible), so that consecutive tasks do not get consecutive node IDs.
func permute(x uint32) uint32 {
	x ^= x >> 16
	x *= 0x7feb352d
	x ^= x >> 16
	return x*0x846ca68b + 0x5bd1e995
}

func unpermute(x uint32) uint32 {
	x = (x - 0x5bd1e995) * inverse(0x846ca68b)
	x ^= x >> 16
	x *= inverse(0x7feb352d)
	return x ^ x>>16
}

// inverse returns the multiplicative inverse of an odd number modulo 2^32 by
// Newton's iteration, which doubles the number of correct bits each time.
func inverse(a uint32) uint32 {
	x := a
	for range 5 {
		x *= 2 - a*x
	}
	return x
}
