package notebook_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/corpus/notebook"
)

// TestRender proves what of a notebook becomes text: sources and text outputs, not images and
// encoded data.
func TestRender(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("iVBORw0KGgoAAAANSUhEUg", 200)
	wrapped := strings.Repeat(strings.Repeat("A", 76)+`\n`, 60)
	output := func(o string) string {
		return `{"nbformat": 4, "cells": [{"cell_type": "code", "source": "x", "outputs": [` + o + `]}]}`
	}
	const before = "[notebook: 1 cell]\n\n[cell 1: code]\nx\n[cell 1: output]\n"
	for name, tt := range map[string]struct{ raw, want string }{
		"no cells": {`{"nbformat": 4, "cells": []}`, "[notebook: 0 cells]\n"},
		"language": {`{"nbformat": 4, "metadata": {"language_info": {"name": "julia"}}, "cells": []}`,
			"[notebook: 0 cells, julia]\n"},
		"kernel": {`{"nbformat": 4, "metadata": {"kernelspec": {"language": "R"}}, "cells": []}`,
			"[notebook: 0 cells, R]\n"},
		"mark":        {"\ufeff" + `{"nbformat": 4, "cells": []}`, "[notebook: 0 cells]\n"},
		"stream":      {output(`{"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]}`), before + "a\nb\n"},
		"text result": {output(`{"output_type": "execute_result", "data": {"text/plain": "42"}}`), before + "42\n"},
		"plain wins":  {output(`{"data": {"text/html": "<b>4</b>", "text/plain": ["4"]}}`), before + "4\n"},
		"HTML alone":  {output(`{"data": {"text/html": "<b>4</b>"}}`), before + "<b>4</b>\n"},
		"markdown":    {output(`{"data": {"text/markdown": "*4*"}}`), before + "*4*\n"},
		"image": {output(`{"data": {"image/png": "` + data + `", "text/plain": "<Figure>"}}`), before +
			"<Figure>\n[image/png of 4.3 KiB, left out]\n"},
		"widget": {output(`{"data": {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "text/plain": "w"}}`),
			before + "w\n[application/vnd.jupyter.widget-view+json of 17 B, left out]\n"},
		"error": {output(`{"output_type": "error", "ename": "E", "evalue": "bad", ` +
			`"traceback": ["\u001b[0;31mE\u001b[0m: bad"]}`), before + "E: bad\n"},
		"bare error": {output(`{"output_type": "error", "ename": "E", "evalue": "bad", "traceback": []}`), before +
			"E: bad\n"},
		"progress bar": {output(`{"output_type": "stream", "text": "0%\r50%\r100%\ndone\r\n"}`), before + "100%\ndone\n"},
		"no output": {`{"nbformat": 4, "cells": [{"cell_type": "code", "source": [], "outputs": []}]}`,
			"[notebook: 1 cell]\n\n[cell 1: code]\n"},
		"raw cell": {`{"nbformat": 4, "cells": [{"cell_type": "raw", "source": "r"}]}`,
			"[notebook: 1 cell]\n\n[cell 1: raw]\nr\n"},
		"inline image": {`{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "![p](data:image/png;base64,` +
			data + `) after"}]}`,
			"[notebook: 1 cell]\n\n[cell 1: markdown]\n![p](data:image/png;base64,[4.3 KiB of encoded data, left out]) after\n"},
		"printed data": {output(`{"output_type": "stream", "text": "key:\n` + wrapped + `"}`),
			before + "key:\n[4.5 KiB of encoded data, left out]\n"},
		"version 3": {`{"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "heading", "level": 2, "source": "H"}, ` +
			`{"cell_type": "code", "input": "y", "outputs": [{"output_type": "pyout", "text": "7", "png": "aGk="}]}]}]}`,
			"[notebook: 2 cells]\n\n[cell 1: heading]\n## H\n\n[cell 2: code]\ny\n[cell 2: output]\n7\n[image/png of 6 " +
				"B, left out]\n"},
		"two cells": {`{"nbformat": 4, "cells": [{"cell_type": "code", "source": "a\n"}, ` +
			`{"cell_type": "code", "source": "b"}]}`, "[notebook: 2 cells]\n\n[cell 1: code]\na\n\n[cell 2: code]\nb\n"},
		"long words": {output(`{"output_type": "stream", "text": "` + strings.Repeat("word ", 600) + `"}`),
			before + strings.Repeat("word ", 600) + "\n"},
	} {
		got, err := notebook.Render([]byte(tt.raw))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\n%.600q\nwant\n%.600q", name, err, got, tt.want)
		}
	}
	for _, raw := range []string{"", "{}", "[]", `{"cells": []}`, `{"nbformat": 4}`, `{"nbformat": 4, "cells": [`,
		`{"nbformat": 4, "cells": {}}`, "text", `{"nbformat": 4, "cells": [{"cell_type": 1}]}`} {
		if got, err := notebook.Render([]byte(raw)); err == nil {
			t.Errorf("%q is a notebook: %q", raw, got)
		}
	}
	got, err := notebook.Render([]byte(output(`{"text": "` + strings.Repeat(`long line ä\n`, 20_000) + `"}`)))
	if err != nil || len(got) > 70<<10 || !strings.Contains(string(got), "of output, left out") {
		t.Errorf("a long output has %d bytes", len(got))
	}
}

// FuzzRender: no file breaks the rendering.
func FuzzRender(f *testing.F) {
	f.Add([]byte(`{"nbformat": 4, "cells": [{"cell_type": "code", "source": ["a"], ` +
		`"outputs": [{"data": {"text/plain": "1"}}]}]}`))
	f.Add([]byte(`{"nbformat": 3, "worksheets": [{"cells": [{"level": -5}]}]}`))
	f.Fuzz(func(_ *testing.T, raw []byte) { _, _ = notebook.Render(raw) })
}
