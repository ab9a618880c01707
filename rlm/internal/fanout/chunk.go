package fanout

import (
	"encoding/json"
	"fmt"
)

// Chunk is a range of bytes.
type Chunk struct{ Off, Length int64 }

// End is the place behind its last byte.
func (c Chunk) End() int64 { return c.Off + c.Length }

// Chunks are written as a flat list of numbers: for each part the distance from
// the end of the part before it (negative where they overlap) and the length.
type Chunks []Chunk

// MarshalJSON writes the flat list.
func (cs Chunks) MarshalJSON() ([]byte, error) {
	flat := make([]int64, 0, 2*len(cs))
	var end int64
	for _, c := range cs {
		flat = append(flat, c.Off-end, c.Length)
		end = c.End()
	}
	return json.Marshal(flat)
}

// UnmarshalJSON reads the flat list.
func (cs *Chunks) UnmarshalJSON(raw []byte) error {
	var flat []int64
	if err := json.Unmarshal(raw, &flat); err != nil {
		return err
	}
	if len(flat)%2 != 0 {
		return fmt.Errorf("a list of parts has %d numbers", len(flat))
	}
	list := make(Chunks, 0, len(flat)/2)
	var end int64
	for i := 0; i < len(flat); i += 2 {
		c := Chunk{end + flat[i], flat[i+1]}
		if c.Off < 0 || c.Length < 0 || c.End() < 0 {
			return fmt.Errorf("part %d of a list is at %d with %d bytes", i/2, c.Off, c.Length)
		}
		list = append(list, c)
		end = c.End()
	}
	*cs = list
	return nil
}

// Joined makes one range of ranges that touch.
func (cs Chunks) Joined() Chunks {
	var out Chunks
	for _, c := range cs {
		if last := len(out) - 1; last >= 0 && out[last].End() == c.Off {
			out[last].Length += c.Length
			continue
		}
		out = append(out, c)
	}
	return out
}
