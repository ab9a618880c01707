package risk

import (
	"slices"
	"strings"
)

// cmdExe assesses a command line of cmd.exe, the command interpreter of Windows.
func (a *assessment) cmdExe(args []string, depth int) {
	at := slices.IndexFunc(args, func(arg string) bool {
		return strings.EqualFold(arg, "/c") || strings.EqualFold(arg, "/k") || strings.EqualFold(arg, "/s/c")
	})
	if at < 0 || depth > maxNested {
		return
	}
	line := strings.ReplaceAll(strings.Join(args[at+1:], " "), "^", "")
	for part := range strings.FieldsFuncSeq(line, func(c rune) bool { return c == '&' || c == '|' || c == '\n' }) {
		command, target, redirected := strings.Cut(part, ">")
		if redirected {
			a.psWrites(strings.TrimSpace(strings.Trim(strings.TrimSpace(strings.TrimLeft(target, ">")), `"`)))
		}
		a.cmdCommand(cmdWords(command), depth)
	}
}

// cmdWords returns the words of a command, with slashes in paths.
func cmdWords(line string) []string {
	var words []string
	for i, part := range strings.Split(strings.TrimLeft(line, " @("), `"`) {
		if part = psPath(part); i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// cmdCommand assesses one command of cmd.exe.
func (a *assessment) cmdCommand(words []string, depth int) {
	if len(words) == 0 {
		return
	}
	name := strings.ToLower(programName(words[0]))
	var options, files []string
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "/") && len(w) < 4 {
			options = append(options, strings.ToLower(w))
		} else {
			files = append(files, strings.TrimSuffix(w, ".*"))
		}
	}
	switch name {
	case "del", "erase", "rd", "rmdir":
		for _, f := range files {
			a.removes(f, slices.Contains(options, "/s"))
		}
	case "move", "ren", "rename":
		for _, f := range files[:min(1, len(files))] {
			a.moves(f)
		}
	case "cd", "chdir", "pushd":
		if len(files) > 0 {
			a.changeDir(files[0])
		}
	case "format", "diskpart":
		a.add(DeleteAll, shown(strings.Join(words, " ")))
	case "call", "start":
		a.cmdCommand(words[1:], depth)
	default:
		words[0] = name
		a.words(words, depth+1)
	}
}
