package pack_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/corpus/pack"
)

// stream sends files and one skipped name.
func stream(t testing.TB, files ...source) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := pack.NewStreamWriter(&buf)
	for _, f := range files {
		if err := w.Add(f.name, strings.NewReader(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	w.Skip("left.bin", "binary", "it is binary")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func receive(r io.Reader, limits pack.Limits) (*pack.Manifest, []byte, error) {
	var buf bytes.Buffer
	b := pack.NewBuilder(&buf, limits)
	if err := pack.ReadStream(r, b); err != nil {
		if _, finishErr := b.Manifest(); finishErr == nil {
			return nil, nil, errors.New("a spoilt pack can be finished")
		}
		return nil, nil, err
	}
	m, err := b.Manifest()
	return m, buf.Bytes(), err
}

func streamSources() []source {
	return []source{
		{"a.txt", "one\ntwo"},
		{"/etc/../passwd", "names are only names\n"},
		{"../../up", ""},
		{strings.Repeat("long/", 100) + "größe", "ünï\xff\x00"},
		{"piece", strings.Repeat("x", 1<<20)},
		{"pieces", strings.Repeat("0123456789\n", 300_000)},
		{"perdure.trailer", "not the trailer"},
	}
}

func TestStreamCarriesThePack(t *testing.T) {
	t.Parallel()
	data := stream(t, streamSources()...)
	for name, r := range map[string]io.Reader{
		"whole": bytes.NewReader(data),
		"bits":  iotest.HalfReader(bytes.NewReader(data)),
	} {
		got, gotPack, err := receive(r, pack.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, wantPack := build(t, streamSources()...)
		if !bytes.Equal(gotPack, wantPack) {
			t.Errorf("%s: the pack differs", name)
		}
		if diff := cmp.Diff(want.Manifest().Files, got.Files); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]pack.Skipped{{File: "left.bin", Kind: "binary", Why: "it is binary"}},
			got.Skipped); diff != "" {
			t.Errorf("%s: skipped (-want +got):\n%s", name, diff)
		}
	}
}

// TestStreamCut cuts a stream at many places: none of them gives a pack.
func TestStreamCut(t *testing.T) {
	t.Parallel()
	data := stream(t, source{"a", "one\n"}, source{"b", strings.Repeat("x", 1000)}, source{"c", ""})
	end := bytes.LastIndexByte(data, '}') + 1 // the zeros after the trailer carry nothing
	for n := 0; n < end; n += 3 {             // each field of a header is longer
		if _, _, err := receive(bytes.NewReader(data[:n]), pack.Limits{}); !errors.Is(err, pack.ErrStream) {
			t.Fatalf("cut after %d of %d bytes: %v, want a bad stream", n, len(data), err)
		}
	}
	broken := errors.New("connection reset")
	r := io.MultiReader(bytes.NewReader(data[:700]), iotest.ErrReader(broken))
	if _, _, err := receive(r, pack.Limits{}); !errors.Is(err, broken) || !errors.Is(err, pack.ErrStream) {
		t.Errorf("broken connection: %v", err)
	}
}

func TestStreamSourceFails(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	for _, size := range []int{0, 100, 3 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			var buf bytes.Buffer
			w := pack.NewStreamWriter(&buf)
			var readErr *pack.ReadError
			err := w.Add("broken", io.MultiReader(strings.NewReader(strings.Repeat("x", size)), iotest.ErrReader(gone)))
			if !errors.As(err, &readErr) || !errors.Is(err, gone) {
				t.Fatalf("error %v, want a read error", err)
			}
			w.Skip("broken", "gone", "it went away")
			if err := w.Add("after", strings.NewReader("text\n")); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			m, data, err := receive(&buf, pack.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := pack.NewReader(m, bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			docs := all(t, r)
			if len(docs) != 1 || docs[0].File != "after" || docs[0].Text != "text\n" || len(m.Skipped) != 1 {
				t.Errorf("documents %+v, skipped %+v", docs, m.Skipped)
			}
		})
	}
}

func TestStreamLimits(t *testing.T) {
	t.Parallel()
	data := stream(t, source{"a", "12345"}, source{"b", "67890"})
	for _, limits := range []pack.Limits{{Files: 1}, {Bytes: 9}} {
		_, _, err := receive(bytes.NewReader(data), limits)
		if !errors.Is(err, pack.ErrLimit) || errors.Is(err, pack.ErrStream) {
			t.Errorf("limits %+v: %v", limits, err)
		}
	}
	if _, _, err := receive(bytes.NewReader(data), pack.Limits{Files: 2, Bytes: 10}); err != nil {
		t.Errorf("at the limits: %v", err)
	}
}

// entry is a hand-made tar entry.
type entry struct {
	header tar.Header
	body   string
}

// plain is an entry of a file, with a record set to 1 when one is named.
func plain(name, body string, records ...string) entry {
	e := entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600}, body}
	for _, r := range records {
		e.header.PAXRecords = map[string]string{r: "1"}
	}
	return e
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		e.header.Size = int64(len(e.body))
		if err := w.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestStreamRefuses(t *testing.T) {
	t.Parallel()
	end := func(body string) entry { return plain("end", body, "PERDURE.trailer") }
	tests := []struct {
		name    string
		entries []entry
		want    string
	}{
		{"no entries", nil, "unexpected EOF"},
		{"no trailer", []entry{plain("a", "x")}, "unexpected EOF"},
		{"trailer of another version", []entry{end(`{"version":9}`)}, "version 9"},
		{"trailer not JSON", []entry{end(`{`)}, "trailer"},
		{"too few files", []entry{end(`{"version":1,"files":1}`)}, "0 files of 0 bytes received, 1 of 0"},
		{"too few bytes", []entry{plain("a", "x"), end(`{"version":1,"files":1,"bytes":2}`)},
			"1 files of 1 bytes received, 1 of 2"},
		{"negative skipped", []entry{end(`{"version":1,"more_skipped":-1}`)}, "more_skipped"},
		{"after the trailer", []entry{end(`{"version":1}`), plain("a", "x")}, "after the trailer"},
		{"link", []entry{{tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc/passwd"}, ""}},
			"not a plain file"},
		{"folder", []entry{{tar.Header{Typeflag: tar.TypeDir, Name: "d/"}, ""}}, "not a plain file"},
		{"device", []entry{{tar.Header{Typeflag: tar.TypeChar, Name: "null"}, ""}}, "not a plain file"},
		{"twice", []entry{plain("a", "x"), plain("a", "y")}, "twice"},
		{"control character", []entry{plain("a\nb", "x")}, "control character"},
		{"continued by another", []entry{plain("a", "x", "PERDURE.more"), plain("b", "y")}, "no end"},
		{"continued by nothing", []entry{plain("a", "x", "PERDURE.more")}, "unexpected EOF"},
		{"continued by the trailer", []entry{plain("a", "x", "PERDURE.more"), end(`{"version":1}`)}, "no end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := receive(bytes.NewReader(tarOf(t, tt.entries...)), pack.Limits{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, _, err := receive(strings.NewReader(strings.Repeat("not a tar file ", 100)), pack.Limits{}); !errors.Is(err,
		pack.ErrStream) {
		t.Errorf("no tar file: %v", err)
	}
}

func TestStreamWriterFailures(t *testing.T) {
	t.Parallel()
	full := errors.New("pipe broke")
	for _, after := range []int{0, 600, 50_000} {
		w := pack.NewStreamWriter(&failingWriter{after: after, err: full})
		err := w.Add("a", strings.NewReader(strings.Repeat("x", 2000)))
		if err == nil {
			err = w.Close()
		}
		if after < 50_000 && !errors.Is(err, full) || after >= 50_000 && err != nil {
			t.Errorf("after %d bytes: %v", after, err)
		}
		if err := w.Add("b", strings.NewReader("")); err == nil {
			t.Errorf("after %d bytes: an ended stream takes another file", after)
		}
		if err := w.Close(); err == nil {
			t.Errorf("after %d bytes: closed twice", after)
		}
	}
	w := pack.NewStreamWriter(io.Discard)
	if err := w.Add("a\x00", strings.NewReader("")); err == nil {
		t.Error("a bad name was sent")
	}
}

// FuzzReadStream: any bytes give an error or a sound pack.
func FuzzReadStream(f *testing.F) {
	f.Add(stream(f, source{"a", "one\n"}, source{"b", ""}))
	f.Add(tarOf(f, plain("a", "x", "PERDURE.more"), plain("a", "y"),
		plain("end", `{"version":1,"files":1,"bytes":2}`, "PERDURE.trailer")))
	f.Add(tarOf(f, plain("a", "x", "PERDURE.more"), plain("a", "", "PERDURE.failed"),
		plain("end", `{"version":1}`, "PERDURE.trailer")))
	f.Add(tarOf(f, plain("a", "x")))
	f.Add([]byte("not a tar file"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, packed, err := receive(bytes.NewReader(data), pack.Limits{Bytes: 4 << 20, Files: 100})
		if err != nil {
			return
		}
		if int64(len(packed)) != m.Bytes {
			t.Fatalf("manifest says %d bytes, the pack has %d", m.Bytes, len(packed))
		}
		encoded, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pack.Decode(encoded); err != nil {
			t.Fatalf("manifest of a received pack does not decode: %v", err)
		}
		readEverything(m, packed)
	})
}

// FuzzStreamRoundTrip: what is sent arrives.
func FuzzStreamRoundTrip(f *testing.F) {
	f.Add("a", []byte("one\n"), "dir/b", []byte{0, 1, 2})
	f.Add("größe", []byte(""), strings.Repeat("n", 300), []byte("x"))
	f.Add("a//b", []byte("x"), "./c ", []byte("x"))
	f.Fuzz(func(t *testing.T, name1 string, data1 []byte, name2 string, data2 []byte) {
		var buf bytes.Buffer
		w := pack.NewStreamWriter(&buf)
		err1 := w.Add(name1, bytes.NewReader(data1))
		err2 := w.Add(name2, bytes.NewReader(data2))
		if err := errors.Join(err1, err2, w.Close()); err != nil || name1 == name2 {
			return
		}
		m, packed, err := receive(&buf, pack.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Files[0].Name != name1 || m.Files[1].Name != name2 || string(packed) != string(data1)+string(data2) {
			t.Fatalf("arrived as %+v, %q", m.Files, packed)
		}
	})
}
