package compress_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/storage/compress"
)

const limit = compress.MaxBytes

// Every value comes back as it was, from many goroutines at once; what compression would not
// shorten is left alone.
func TestPack(t *testing.T) {
	t.Parallel()
	c := compress.New(limit)
	random := make([]byte, 50_000)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	values := map[string]string{"words": strings.Repeat("order 17 was paid by clerk 4\n", 2000),
		"the longest": strings.Repeat("x", limit), "random": string(random), "empty": ""}
	var all sync.WaitGroup
	for name, value := range values {
		for range 4 {
			all.Go(func() {
				packed, err := c.Pack(value)
				short := name == "words" || name == "the longest"
				if err != nil || (packed != nil) != short || len(packed) > len(value)/2 {
					t.Errorf("%s: %d of %d bytes, %v", name, len(packed), len(value), err)
				}
				if packed == nil {
					return
				}
				if got, err := c.Unpack(packed); err != nil || got != value {
					t.Errorf("%s came back as %d bytes, %v", name, len(got), err)
				}
			})
		}
	}
	all.Wait()
}

// Bytes that are damaged, or that would fill the memory, are an error.
func FuzzUnpack(f *testing.F) {
	c := compress.New(limit)
	packed, err := c.Pack(strings.Repeat("order 17 was paid by clerk 4\n", 500))
	if err != nil {
		f.Fatal(err)
	}
	bomb, err := compress.New(64 * limit).Pack(strings.Repeat("\x00", 8*limit))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := c.Unpack(bomb); err == nil {
		f.Error("a value beyond the limit is no error")
	}
	for _, seed := range [][]byte{packed, packed[:len(packed)/2], bomb, nil, []byte("text")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, err := c.Unpack(raw); err == nil && len(got) > limit {
			t.Errorf("%d bytes", len(got))
		}
	})
}
