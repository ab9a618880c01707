// Package compress compresses long values for the database, with DEFLATE (RFC 1951).
package compress

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"strings"
	"sync"
)

// MaxBytes is the length of the longest value in the table of payloads.
const MaxBytes = 1 << 20

// Codec compresses and decompresses values. Its methods may be called from several goroutines.
type Codec struct {
	limit   int
	writers sync.Pool // of *flate.Writer, which need more than a megabyte each
}

// New returns a codec for values of at most limit bytes.
func New(limit int) *Codec { return &Codec{limit: limit} }

// worth is the part of a value that compression has to save: less does not pay for reading it.
const worth = 8

// Pack returns the compressed value, nil if it is not worth the time.
func (c *Codec) Pack(value string) ([]byte, error) {
	var out bytes.Buffer
	w, err := c.writer(&out)
	if err == nil {
		_, err = io.WriteString(w, value)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress value: %w", err)
	}
	c.writers.Put(w)
	if out.Len() > len(value)-len(value)/worth {
		return nil, nil
	}
	return out.Bytes(), nil
}

func (c *Codec) writer(to io.Writer) (*flate.Writer, error) {
	if w, ok := c.writers.Get().(*flate.Writer); ok {
		w.Reset(to)
		return w, nil
	}
	return flate.NewWriter(to, flate.BestSpeed)
}

// Unpack returns the value of what Pack returned. It fails for bytes that are damaged, and for
// values beyond the limit.
func (c *Codec) Unpack(packed []byte) (string, error) {
	var out strings.Builder
	n, err := io.Copy(&out, io.LimitReader(flate.NewReader(bytes.NewReader(packed)), int64(c.limit)+1))
	if err == nil && n > int64(c.limit) {
		err = fmt.Errorf("it is longer than the limit of %d bytes", c.limit)
	}
	if err != nil {
		return "", fmt.Errorf("decompress value: %w", err)
	}
	return out.String(), nil
}
