package pipe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// framed is a frame with this content.
func framed(content string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content...)
}

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  error
	}{
		{"nothing", nil, io.EOF},
		{"a part of the length", []byte{0, 0}, io.ErrUnexpectedEOF},
		{"a part of the content", framed(`{"type":"done"}`)[:10], io.ErrUnexpectedEOF},
		{"too long", []byte{0xff, 0xff, 0xff, 0xff}, errFrame},
		{"not JSON", framed("x"), errFrame},
		{"of other types", framed(`{"type":5}`), errFrame},
		{"a frame", framed(`{"type":"done","done":{"output":"a"}}`), nil},
	} {
		a := new(Answer)
		err := readFrame(bytes.NewReader(tt.bytes), a)
		if !errors.Is(err, tt.want) || err == nil && a.Done.Output != "a" {
			t.Errorf("%s: %+v, %v, want %v", tt.name, a, err, tt.want)
		}
	}
}

// FuzzReadFrame checks that no bytes of a process are taken for more than they are.
func FuzzReadFrame(f *testing.F) {
	f.Add(framed(`{"type":"request","function":"llm_query","args":{}}`))
	f.Add(framed(`{"type":"done","done":{"vars":[{"name":"a","json":"{"}],"final":{"json":"x"}}}`))
	f.Add([]byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		a := new(Answer)
		if readFrame(bytes.NewReader(data), a) != nil || a.Done == nil {
			return
		}
		for _, v := range a.Done.end().Vars {
			if v.Value != nil && len(v.Value) == 0 {
				t.Fatal("an empty value")
			}
		}
	})
}
