package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/corpus/chunk"
	"github.com/perdure/perdure/internal/corpus/pack"
)

// splitText: 1 GB of mixed text, most of it in files that do not fit in a chunk,
// from a pack on disk to the list of chunks, in a process of its own.
func splitText(b *bench, round int) error {
	size := int64(b.n) << 20
	if size == 0 {
		size = 1000 << 20
	}
	if err := b.writePack(size); err != nil {
		return err
	}
	for _, tokens := range []int{32_000, 2_000} {
		values, cpu, err := b.valuesOf("split-child", strconv.Itoa(tokens))
		if err != nil {
			return err
		}
		values["cpu_s"] = rounded(cpu.Seconds())
		err = b.print("split", "mixed text (Go sources, Markdown, CSV, JSON Lines, logs) in a pack on disk, to chunks "+
			"along its structure, in a fresh process", round, values)
		if err != nil {
			return err
		}
	}
	return nil
}

// splitChild is a child process: it splits the pack and prints what it took.
func splitChild(b *bench, _ int) error {
	tokens, err := strconv.Atoi(b.args[0])
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(b.dir, "manifest"))
	if err != nil {
		return err
	}
	m, err := pack.Decode(raw)
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(b.dir, "pack"))
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := pack.NewReader(m, f)
	if err != nil {
		return err
	}
	start := time.Now()
	chunks, err := chunk.Pack(r, chunk.Config{ChunkTokens: tokens})
	if err != nil {
		return err
	}
	took := time.Since(start)
	var large int64
	for _, f := range m.Files {
		if f.Length > int64(tokens)*4 {
			large += f.Length
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"bytes": m.Bytes, "files": len(m.Files), "bytes_in_cut_files": large, "chunk_tokens": tokens, "chunks": len(chunks),
		"s": rounded(took.Seconds()), "mb_per_s": rounded(float64(m.Bytes) / 1e6 / took.Seconds()),
		"peak_mib": memoryOf("VmHWM:"),
	})
}

// writePack writes a pack of about so many bytes and its manifest: the sources of
// the Go distribution as they are (a tenth), then large files.
func (b *bench) writePack(size int64) error {
	f, err := os.Create(filepath.Join(b.dir, "pack"))
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	builder := pack.NewBuilder(w, pack.Limits{})
	var sources strings.Builder
	root, err := exec.CommandContext(b.ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	if err := addSources(builder, filepath.Join(strings.TrimSpace(string(root)), "src"), &sources, size/10); err != nil {
		return err
	}
	large := size / 20
	for i := 0; builder.Size() < size; i++ {
		var text io.Reader
		var name string
		switch i % 6 {
		case 0, 1:
			name, text = "all%d.go", &repeated{make: func(int) string { return sources.String() }}
		case 2:
			name, text = "book%d.md", &repeated{make: markdown}
		case 3:
			name, text = "table%d.csv", &repeated{make: row}
		case 4:
			name, text = "data%d.jsonl", &repeated{make: object}
		case 5:
			name, text = "server%d.log", &repeated{make: entry}
		}
		if err := builder.Add(fmt.Sprintf(name, i), io.LimitReader(text, large)); err != nil {
			return err
		}
	}
	m, err := builder.Manifest()
	if err != nil {
		return err
	}
	raw, err := m.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "manifest"), raw, 0o600); err != nil {
		return err
	}
	return errors.Join(w.Flush(), f.Close())
}

// addSources adds Go files until they have so many bytes; all keeps their text.
func addSources(builder *pack.Builder, root string, all *strings.Builder, size int64) error {
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if all.Len() < 32<<20 {
			all.Write(text)
		}
		if err := builder.Add(path, strings.NewReader(string(text))); err != nil {
			return err
		}
		if builder.Size() > size {
			return fs.SkipAll
		}
		return nil
	})
	if err == nil && all.Len() == 0 {
		err = fmt.Errorf("no Go sources in %q", root)
	}
	return err
}

// repeated is a text without end.
type repeated struct {
	make func(i int) string
	i    int
	rest string
}

// Read never fails.
func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		r.rest = r.make(r.i)
		r.i++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

const sentence = "The scheduler wakes a worker when a task becomes ready, and the worker claims as many as it has " +
	"places. "

func markdown(i int) string {
	if i%10 != 0 {
		return sentence + sentence + "\n" + sentence + "\n\n- an item\n- another one\n\n"
	}
	return fmt.Sprintf("## Section %d\n\n%s\n\n```go\nfunc f%d() {\n\n\t# not a heading\n}\n```\n\n", i/10, sentence, i)
}

func row(i int) string {
	if i == 0 {
		return "id,name,text,amount\n"
	}
	return fmt.Sprintf("%d,name %d,\"%s\nin \"\"two\"\" lines\",%d.50\n", i, i%1000, sentence[:60], i)
}

func object(i int) string {
	return fmt.Sprintf(`{"id": %d, "kind": "event", "text": "%s", "tags": ["a", "b"], "nested": {"x": %d}}`+"\n", i,
		sentence, i%7)
}

func entry(i int) string {
	line := fmt.Sprintf("2026-01-%02dT%02d:%02d:%02dZ INFO request %d took %d ms\n", i%28+1, i/3600%24, i/60%60, i%60, i,
		i%500)
	if i%50 == 0 {
		line += "java.lang.IllegalStateException: no place\n\tat a.b.C.run(C.java:10)\n\tat a.b.D.run(D.java:20)\n"
	}
	return line
}
