package workspace_test

import (
	"bytes"
	"encoding/binary"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/workspace"
)

func sample() []byte {
	return workspace.EncodeManifest([]workspace.File{
		{Path: "a", Kind: workspace.KindFolder, Mode: 0o755},
		{Path: "a/b", Kind: workspace.KindFile, Mode: 0o644, Size: 300, Hash: workspace.Hash{1, 2, 3}},
		{Path: "a/bc", Kind: workspace.KindLink, Target: "../b"},
	}, []workspace.LeftOut{{Path: "big", Why: workspace.TooLarge}, {Path: "sock", Why: workspace.Special}})
}

func FuzzManifest(f *testing.F) {
	f.Add(sample())
	f.Add(workspace.EncodeManifest(nil, nil))
	for _, bad := range []string{"../x", "/x", "a//b", ".git", "a/.PERDURE/x", "", ".", "a/.perdure-tmp-1", "a\x00b"} {
		f.Add(workspace.EncodeManifest([]workspace.File{{Path: bad, Kind: workspace.KindFile}}, nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		again, files, err := workspace.RecodeManifest(data)
		if err != nil {
			return
		}
		if !bytes.Equal(again, data) {
			t.Errorf("%q encodes to %q", data, again)
		}
		last := ""
		for _, file := range files {
			if file.Path <= last || path.Clean("/"+file.Path) != "/"+file.Path || strings.Contains(file.Path, "\x00") {
				t.Errorf("path %q after %q", file.Path, last)
			}
			for part := range strings.SplitSeq(file.Path, "/") {
				if strings.EqualFold(part, ".git") || strings.EqualFold(part, ".perdure") || part == ".." {
					t.Errorf("path %q", file.Path)
				}
			}
			last = file.Path
		}
	})
}

func TestManifestRefuses(t *testing.T) {
	t.Parallel()
	if _, _, err := workspace.RecodeManifest(sample()); err != nil {
		t.Fatal(err)
	}
	file := func(p string) workspace.File { return workspace.File{Path: p, Kind: workspace.KindFile} }
	for name, files := range map[string][]workspace.File{
		"out":         {file("../x")},
		"absolute":    {file("/x")},
		"git":         {file(".git")},
		"store":       {{Path: "a", Kind: workspace.KindFolder}, file("a/.perdure")},
		"temp":        {file(".perdure-tmp-1")},
		"order":       {file("b"), file("a")},
		"twice":       {file("a"), file("a")},
		"no folder":   {file("a/b")},
		"below file":  {file("a"), file("a/b")},
		"below link":  {{Path: "a", Kind: workspace.KindLink, Target: "b"}, file("a/b")},
		"no target":   {{Path: "a", Kind: workspace.KindLink}},
		"mode":        {{Path: "a", Kind: workspace.KindFile, Mode: 0o10000}},
		"kind":        {{Path: "a", Kind: 'x'}},
		"zero byte":   {file("a\x00")},
		"long name":   {file(strings.Repeat("x", 5000))},
		"dot":         {file(".")},
		"empty":       {file("")},
		"two slashes": {{Path: "a", Kind: workspace.KindFolder}, file("a//b")},
	} {
		if _, _, err := workspace.RecodeManifest(workspace.EncodeManifest(files, nil)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	whole := sample()
	for n := range whole {
		if _, _, err := workspace.RecodeManifest(whole[:n]); err == nil {
			t.Errorf("cut at %d: no error", n)
		}
	}
	if _, _, err := workspace.RecodeManifest(append(whole, 0)); err == nil {
		t.Error("byte after the end: no error")
	}
}

func FuzzCache(f *testing.F) {
	f.Add([]byte("\x00"))
	f.Add(append([]byte("\x01\x03a/b"), bytes.Repeat([]byte{7}, 72)...))
	f.Fuzz(func(t *testing.T, body []byte) {
		first, second, err := workspace.RecodeCache(body)
		if err == nil && first != second {
			t.Errorf("%d entries, then %d", first, second)
		}
	})
}

func FuzzPackIndex(f *testing.F) {
	f.Add([]byte("contents"), append(bytes.Repeat([]byte{9}, 32), 8, 0, 0, 0, 0, 0, 0, 0))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, contents, index []byte) {
		got, err := workspace.PackIndex(contents, index)
		if err != nil {
			return
		}
		sum := uint64(0)
		for i := 0; i < len(got); i += 40 {
			sum += binary.LittleEndian.Uint64(got[i+32:])
		}
		if !bytes.Equal(got, index) || sum != uint64(len(contents)) {
			t.Errorf("index %q for %d bytes that sums up to %d", got, len(contents), sum)
		}
	})
}

func FuzzPatterns(f *testing.F) {
	f.Add("*.o\n!/a/**/b\\ \n[[:alpha:]-z]\n", "a/b", true)
	f.Add(strings.Repeat("**/a/", 40), strings.Repeat("a/", 200)+"b", false)
	f.Add("a*a*a*a*a*a*a*a*b", strings.Repeat("a", 200), false)
	f.Fuzz(func(t *testing.T, file, name string, folder bool) {
		if len(file)+len(name) > 20_000 {
			return
		}
		with := workspace.Ignores(".", []byte(file), name, folder)
		// A line that negates everything at the end decides.
		if workspace.Ignores(".", []byte(file+"\n!*\n"), name, folder) {
			t.Errorf("%q ignores %q (%v before) after all", file, name, with)
		}
	})
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	want := map[string]bool{}
	for _, tt := range []struct {
		file, path string
		folder     bool
		ignored    bool
	}{
		{"a", "a", false, true},
		{"a", "x/a", false, true},
		{"/a", "x/a", false, false},
		{"a/", "a", false, false},
		{"a/", "a", true, true},
		{"a/b", "x/a/b", false, false},
		{"**/b", "x/a/b", false, true},
		{"a/**", "a/b/c", false, true},
		{"a/**", "a", true, false},
		{"a/**/c", "a/c", false, true},
		{"*.o\n!b.o", "b.o", false, false},
		{"#a", "#a", false, false},
		{"\\#a", "#a", false, true},
		{"\\!a", "!a", false, true},
		{"a ", "a", false, true},
		{"a\\ ", "a ", false, true},
		{"a\r", "a", false, true},
		{"[a", "[a", false, false},
		{"[!a]", "b", false, true},
		{"[[:digit:]]", "7", false, true},
		{"a?c", "a/c", false, false},
		{"\xef\xbb\xbfa", "a", false, true},
	} {
		key := tt.file + " for " + tt.path
		got[key], want[key] = workspace.Ignores(".", []byte(tt.file), tt.path, tt.folder), tt.ignored
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	if !workspace.Ignores("d", []byte("/a"), "d/a", false) || workspace.Ignores("d", []byte("/a"), "a", false) {
		t.Error("patterns count from the folder of their file")
	}
}
