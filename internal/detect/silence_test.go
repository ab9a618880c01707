package detect_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// The suppression of named rules warns. Suppressing all rules, or a group of them, blocks
// whatever the reason.
func TestSilenceNeedsName(t *testing.T) {
	t.Parallel()
	const line = "value = read(path)"
	for _, test := range []struct{ path, note, want string }{
		{"a.go", "//nolint:gosec // the path is one of ours", "warn"},
		{"a.go", "//nolint // the path is one of ours", "act"},
		{"a.go", "//nolint:gosec,errcheck // the path is one of ours", "warn"},
		{"a.go", "//nolint:gosec,errcheck // fine here", "warn"},
		{"a.go", "//nolint:gosec,errcheck,unparam,funlen // the path is one of ours", "warn"},
		{"a.go", "//nolint:gosec", "warn"},
		{"a.go", "//nolint:gosec,all", "act"},
		{"a.go", "//nolint:gosec // ok", "warn"},
		{"a.go", "// #nosec G304 -- the path is one of ours", "warn"},
		{"a.go", "//revive:disable:exported the path is one of ours", "warn"},
		{"a.ts", "// @ts-expect-error the path is one of ours", "warn"},
		{"a.ts", "// @ts-expect-error", "warn"},
		{"a.ts", "// @ts-ignore the path is one of ours", "warn"},
		{"a.ts", "// eslint-disable-next-line no-undef -- the path is one of ours", "warn"},
		{"a.ts", "// eslint-disable-next-line -- the path is one of ours", "act"},
		{"a.ts", "// eslint-disable-next-line no-undef, eqeqeq -- ours", "warn"},
		{"a.ts", "/* eslint no-undef: 0 */", "act"},
		{"a.ts", "/* eslint eqeqeq: \"off\", curly: \"off\" */", "act"},
		{"a.ts", "// biome-ignore lint/style/useConst: the path is one of ours", "warn"},
		{"a.ts", "// biome-ignore lint: the path is one of ours", "act"},
		{"a.ts", "// deno-lint-ignore no-explicit-any -- the path is one of ours", "warn"},
		{"a.ts", "// deno-lint-ignore-file", "act"},
		{"a.ts", "// tslint:disable-next-line:no-any the path is one of ours", "warn"},
		{"a.ts", "// tslint:disable", "act"},
		{"a.ts", "// oxlint-disable", "act"},
		{"a.py", "# noqa: F401 the path is one of ours", "warn"},
		{"a.py", "# noqa the path is one of ours", "act"},
		{"a.py", "# type: ignore[arg-type] # the path is one of ours", "warn"},
		{"a.py", "# type: ignore # the path is one of ours", "act"},
		{"a.py", "# pylint: disable=broad-except # the path is one of ours", "warn"},
		{"a.py", "# pylint: disable=all # the path is one of ours", "act"},
		{"a.py", "# pylint: skip-file", "act"},
		{"a.py", "# mypy: ignore-errors", "act"},
		{"a.py", "# pyright: basic", "act"},
		{"a.py", "# pyright: reportMissingImports=false", "act"},
		{"a.py", "# pyright: ignore[reportAny] # the path is one of ours", "warn"},
		{"a.py", "# ruff: noqa", "act"},
		{"a.py", "# flake8: noqa", "act"},
		{"a.py", "# pytype: disable=attribute-error  the path is one of ours", "warn"},
		{"A.java", "// NOSONAR the path is one of ours", "act"},
		{"A.java", "// NOPMD the path is one of ours", "act"},
		{"A.java", "// CHECKSTYLE:OFF", "act"},
		{"A.java", "@SuppressWarnings(\"all\") // the path is one of ours", "act"},
		{"a.kt", "@file:Suppress(\"all\")", "act"},
		{"a.kt", "// noinspection UnusedVariable the path is one of ours", "warn"},
		{"A.cs", "#pragma warning disable // the path is one of ours", "act"},
		{"A.cs", "#nullable disable", "act"},
		{"A.cs", "// ReSharper disable All", "act"},
		{"A.cs", "[SuppressMessage(\"Design\", \"CA1031\")]", "warn"},
		{"a.rs", "#[allow(clippy::all)]", "act"},
		{"a.rs", "#![allow(warnings)]", "act"},
		{"a.rs", "#[expect(unused)]", "act"},
		{"a.rb", "# rubocop:disable all -- the path is one of ours", "act"},
		{"a.rb", "# rubocop:disable Metrics -- the path is one of ours", "act"},
		{"a.rb", "# rubocop:disable Metrics/AbcSize -- the path is one of ours", "warn"},
		{"a.rb", "# steep:ignore", "act"},
		{"a.rb", "# standard:disable all", "act"},
		{"a.rb", "# typed: false", "act"},
		{"a.php", "// @phpstan-ignore-next-line the path is one of ours", "act"},
		{"a.php", "// @phpstan-ignore argument.type (the path is one of ours)", "warn"},
		{"a.php", "// phpcs:ignore Generic.Files.LineLength -- the path is one of ours", "warn"},
		{"a.php", "// phpcs:disable", "act"},
		{"a.php", "/** @psalm-suppress MixedArgument the path is one of ours */", "warn"},
	} {
		before := ""
		if strings.HasSuffix(test.path, ".php") {
			before = "<?php\n"
		}
		report := find(t, &detect.Input{
			Changes: edited(test.path, before+"a = b\n"+line+"\n", before+"a = b\n"+test.note+"\n"+line+"\n")})
		if got := strings.Join(patternsOf(report), ", "); got != test.want+" complaint-silenced" {
			t.Errorf("%s: %q, want to %s", test.note, got, test.want)
		}
	}
}

// Exclusions from coverage, in the tools of all languages.
func TestCoverageLeftOut(t *testing.T) {
	t.Parallel()
	for path, notes := range map[string][]string{
		"a.go":   {"// coverage:ignore", "//coverage:ignore"},
		"a.ts":   {"/* v8 ignore next */", "/* c8 ignore start */", "/* istanbul ignore else */", "// LCOV_EXCL_LINE"},
		"a.py":   {"# pragma: no cover", "# pragma: no branch"},
		"a.rb":   {"# :nocov:"},
		"A.cs":   {"[ExcludeFromCodeCoverage]"},
		"a.rs":   {"#[coverage(off)]", "#[cfg(not(tarpaulin_include))]"},
		"A.java": {"@ExcludeFromJacocoGeneratedReport"},
		"a.php":  {"// @codeCoverageIgnore", "/** @codeCoverageIgnore */"},
	} {
		for _, note := range notes {
			before := ""
			if path == "a.php" {
				before = "<?php\n"
			}
			report := find(t, &detect.Input{
				Changes: edited(path, before+"a = b\nvalue = read(path)\n", before+"a = b\n"+note+"\nvalue = read(path)\n")})
			if got := strings.Join(patternsOf(report), ", "); got != "act coverage-excluded" {
				t.Errorf("%s: %q, want it to act", note, got)
			}
		}
	}
}
