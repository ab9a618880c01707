package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/testing/replyserver"
)

// TestFilesOfAnyEncodingReachTheModelAsText proves over a real connection that what is sent of a file
// is its text, and small for a notebook with an image.
func TestFilesOfAnyEncodingReachTheModelAsText(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"shift-jis.txt": "日本語のテキスト", "utf16le-bom.txt": "ZEBRA-16LE",
		"plot.ipynb": "ZEBRA-NB"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := replyserver.Start(t, func(replyserver.Request) []byte { return replyserver.Chat("ok") })
			file, err := filepath.Abs(filepath.Join("testdata", "cases", "files", name))
			if err != nil {
				t.Fatal(err)
			}
			run := runCase(t, t.TempDir(), "run", "token?", "-c", file, "--model", "openai:f", "--base-url", server.URL)
			if run.status != 0 || !strings.Contains(run.stderr, "converted to UTF-8 text: 1 file: ") {
				t.Fatalf("status %d, errors %q", run.status, run.stderr)
			}
			sent := string(server.Requests()[0].Body)
			if !strings.Contains(sent, want) || strings.Contains(sent, "\uFFFD") || len(sent) > 16<<10 {
				t.Errorf("%d bytes were sent: %.2000q", len(sent), sent)
			}
		})
	}
}

// runUntrusted runs the program without the trust that the tests have.
func runUntrusted(t *testing.T, dir string, args ...string) caseRun {
	t.Helper()
	return runCaseIn(t, dir, []string{"PERDURE_TRUST=", "XDG_CONFIG_HOME=" + t.TempDir()}, args...)
}

// TestFileThatIsNoTextIsRefused proves that a named file which cannot be read as text is bad input
// with a command that can be typed, and that one in a folder is listed.
func TestFileThatIsNoTextIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pdf, err := os.ReadFile(filepath.Join("testdata", "cases", "files", "small-flate.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"doc.pdf": string(pdf), "a.txt": "the token is ZEBRA\n",
		"odd.txt": "value \x9d\n", "cut.ipynb": `{"nbformat": 4, "cells": [{"source": "the token is OKAPI`,
		".env": "TOKEN=secret-token\n", ".env.example": "TOKEN=\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, hint := range map[string]string{"doc.pdf": "--pre '*.pdf=pdftotext - -'",
		"odd.txt": "--encoding windows-1252"} {
		run := runCase(t, dir, "run", "token?", "-c", name)
		if run.status != 2 || !strings.Contains(run.stderr, hint) {
			t.Errorf("%s: status %d, errors %q", name, run.status, run.stderr)
		}
	}
	run := runCase(t, dir, "run", "token", "-c", ".")
	if run.status != 0 || strings.Contains(run.stdout, "secret-token") || !strings.Contains(run.stdout, "ZEBRA") {
		t.Errorf("status %d, output %q", run.status, run.stdout)
	}
	for _, want := range []string{"skipped: 3 files", "doc.pdf: it is a PDF document",
		"odd.txt: its encoding is not UTF-8",
		".env: it is an environment file"} {
		if !strings.Contains(run.stderr, want) {
			t.Errorf("%q is not in %q", want, run.stderr)
		}
	}
	run = runCase(t, dir, "run", "token", "-c", "cut.ipynb", "--json")
	const warning = "cut.ipynb: it ends early, at byte 56, so it was read as text"
	if run.status != 0 || !strings.Contains(run.stderr, "warning: "+warning) || !strings.Contains(run.stdout, warning) ||
		!strings.Contains(run.stdout, "OKAPI") {
		t.Errorf("broken notebook: status %d, output %q, errors %q", run.status, run.stdout, run.stderr)
	}
	run = runCase(t, dir, "run", "token", "-c", ".env")
	if run.status != 0 || !strings.Contains(run.stderr, "warning: .env: ") {
		t.Errorf("named secret: status %d, errors %q", run.status, run.stderr)
	}
	run = runCase(t, dir, "run", "token", "-c", "doc.pdf", "--pre", "*.txt=cat", "--pre",
		"*.pdf=sh -c 'echo the token is QUAGGA'")
	if run.status != 0 || !strings.Contains(run.stdout, "QUAGGA") {
		t.Errorf("with a command: status %d, output %q, errors %q", run.status, run.stdout, run.stderr)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".perdure"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := "pre: |\n  *.pdf=sh -c 'echo the token is QUAGGA'\n"
	if err := os.WriteFile(filepath.Join(dir, ".perdure", "config.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	run = runUntrusted(t, dir, "run", "token", "-c", "doc.pdf")
	if run.status == 0 || strings.Contains(run.stdout, "QUAGGA") || !strings.Contains(run.stderr, "trust") {
		t.Errorf("a setting without trust: status %d, output %q, errors %q", run.status, run.stdout, run.stderr)
	}
	run = runUntrusted(t, dir, "run", "token", "-c", "doc.pdf", "--trust")
	if run.status != 0 || !strings.Contains(run.stdout, "QUAGGA") {
		t.Errorf("a trusted setting: status %d, output %q, errors %q", run.status, run.stdout, run.stderr)
	}
}
