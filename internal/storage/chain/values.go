package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
)

// Sum is a digest: the first half of a SHA-256 hash, because an attacker would have to find
// a second row with the same digest, not two rows of his choice. It is zero for a row that
// was removed.
type Sum [16]byte

// String returns the digest in hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Values are the values of a row's columns in the form that is hashed: the length and the
// text of each.
type Values []byte

// Row returns no values, to which the caller adds those of a row in the order of its
// columns. They are valid until the next call of a method of the hasher.
func (h *Hasher) Row() *Values {
	h.row = h.row[:0]
	return &h.row
}

// Digest returns the digest of a row with these values: text, integers, or nil.
func (h *Hasher) Digest(values ...any) string {
	row := h.Row()
	for _, v := range values {
		if err := row.Scan(v); err != nil {
			panic(err)
		}
	}
	return row.Sum().String()
}

// Text adds a text.
func (v *Values) Text(s string) {
	*v = append(v.length(len(s)), s...)
}

// Int adds an integer.
func (v *Values) Int(n int64) {
	at := len(*v)
	buf := strconv.AppendInt(v.length(0), n, 10)
	binary.BigEndian.PutUint64(buf[at:], uint64(len(buf)-at-8)) //nolint:gosec // a length
	*v = buf
}

// IntOrNull adds an integer, or NULL for nil.
func (v *Values) IntOrNull(n *int64) {
	if n == nil {
		*v = v.length(-1)
		return
	}
	v.Int(*n)
}

// Scan adds a value as the driver of a database returns it or as it is passed to it. It
// fails for types that no column has.
func (v *Values) Scan(value any) error {
	switch value := value.(type) {
	case string:
		v.Text(value)
	case []byte:
		*v = append(v.length(len(value)), value...)
	case int64:
		v.Int(value)
	case int:
		v.Int(int64(value))
	case float64:
		v.Text(strconv.FormatFloat(value, 'g', -1, 64))
	case *int64:
		v.IntOrNull(value)
	case nil:
		v.IntOrNull(nil)
	default:
		return fmt.Errorf("no digest of a %T", value)
	}
	return nil
}

// Sum returns the digest of the row. It equals that of the row when it is read.
func (v Values) Sum() Sum {
	sum := sha256.Sum256(v)
	return Sum(sum[:len(Sum{})])
}

// length returns the values with the length of another one, -1 for NULL.
func (v Values) length(n int) Values {
	return binary.BigEndian.AppendUint64(v, uint64(n)) //nolint:gosec // only the bits matter
}
