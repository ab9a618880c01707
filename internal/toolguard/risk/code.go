package risk

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// interpreter reports whether a program takes code as an argument, or reads it.
func interpreter(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	return slices.Contains([]string{"python", "pypy", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua",
		"osascript", "pwsh", "awk", "gawk", "mawk", "nawk"}, name)
}

// script assesses the code passed to an interpreter.
func (a *assessment) script(name string, args []string, depth int) {
	awk := strings.HasSuffix(name, "awk")
	for i, arg := range args {
		switch {
		case awk && !strings.HasPrefix(arg, "-"):
			a.code(arg, depth)
			return
		case awk:
		case i+1 < len(args) && strings.HasPrefix(arg, "-") && len(arg) < 8 &&
			strings.ContainsAny(arg[len(arg)-1:], "cerEp") || arg == "--eval" && i+1 < len(args):
			a.code(args[i+1], depth)
		case !strings.HasPrefix(arg, "-"):
			return // the rest are arguments of the script
		}
	}
}

// Calls that delete, move, write, and run commands, in the languages that interpreters
// accept on a command line.
var deleters = lazyregexp.New(
	`(?i:\]::delete\w*)|` +
		`\b(os\.(remove|unlink|rmdir|removedirs|truncate)|shutil\.rmtree|rmtree|unlink(Sync)?|rmSync|rmdirSync|` +
		`truncateSync|fs\.(rm|unlink|rmdir|promises\.rm)|File\.(delete|unlink|truncate)|FileUtils\.(rm|rm_f|rm_r|rm_rf|` +
		`remove)|Deno\.remove(Sync)?|Remove-Item)\b`)

var movers = lazyregexp.New(
	`(?i:\]::(?:move|copy|replace))|` +
		`\b(os\.(rename|replace|renames|chmod)|shutil\.(move|copy|copyfile)|rename(Sync)?|chmod(Sync)?|FileUtils\.(mv|cp|` +
		`chmod)|copyFile(Sync)?)\b`)

var writers = lazyregexp.New(
	`(?i:\]::(?:writeall|appendall|create))|` +
		`open\([^)]*["'][rb]*[wax+]|write_text|write_bytes|writeFile|appendFile|file_put_contents|(File|IO)\.write|` +
		`\.touch\(|symlink`)

var runners = lazyregexp.New(
	`os\.(system|popen|exec|spawn)|subprocess|\bsystem\b|\bexec(Sync|File|FileSync)?\b|\bspawn(Sync)?\b|shell_exec|` +
		`passthru|popen|qx`)

var quotedParts = lazyregexp.New("'([^'\\\\\n]{1,300})'|\"([^\"\\\\\n]{1,300})\"|`([^`\n]{1,300})`")

// code assesses a program in another language by its calls and strings. It does not match
// strings with calls.
func (a *assessment) code(text string, depth int) {
	var strs []string
	for _, m := range quotedParts().FindAllStringSubmatch(text, maxNames) {
		strs = append(strs, m[1]+m[2]+m[3])
	}
	deletes, moves, writes := deleters().MatchString(text), movers().MatchString(text), writers().MatchString(text)
	named := false
	for _, s := range strs {
		a.named(s)
		rel, outside := a.place(s)
		class := project.Classify(rel).Class
		switch guarded := class == project.TestFile || testFolder(rel); {
		case deletes && (guarded || class.Protected() || strings.ContainsAny(s, "/.") && !strings.Contains(s, " ")):
			named = true
			a.removes(s, false)
		case moves && guarded && !outside:
			a.moves(s)
		case (writes || moves) && !outside:
			a.writes(s)
		}
	}
	if deletes && !named {
		a.add(DeleteFiles, shown(text))
	}
	if !runners().MatchString(text) {
		return
	}
	for i, s := range strs { // a command line, or its words
		switch first, _, line := strings.Cut(s, " "); {
		case line && acts(first):
			a.nested(s, depth)
		case acts(s):
			a.words(slices.Clone(strs[i:]), depth+1)
			return
		}
	}
}
