package risk

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// program is the command line of a program that takes a script as an argument.
type program struct {
	// scripts are the arguments that are scripts, files those that are files.
	scripts, files []string
	// inPlace is set if the script changes the files.
	inPlace bool
}

// optionsOf describes the options of a program that takes a script as an argument.
type optionsOf struct {
	// script are the letters of options with a script, file of those with the file of a
	// script, other of those with another argument.
	script, file, other string
	// first is set if the first argument is a script unless an option has one.
	first bool
	// inPlace is the letter of the option that changes the files; 0 for none.
	inPlace byte
}

// scripted returns the options of a program that takes a script; false for other programs.
func scripted(name string) (optionsOf, bool) {
	switch name {
	case "sed", "gsed":
		return optionsOf{script: "e", file: "f", other: "l", first: true, inPlace: 'i'}, true
	case "awk", "gawk", "mawk", "nawk":
		return optionsOf{script: "e", file: "fEi", other: "Fv", first: true}, true
	case "perl":
		return optionsOf{script: "eE", other: "IMm", inPlace: 'i'}, true
	case "ruby":
		return optionsOf{script: "e", other: "IrC", inPlace: 'i'}, true
	}
	return optionsOf{}, false
}

// programOf parses the arguments of sed, awk, perl and ruby. Other programs have files only.
func programOf(name string, args []string) (p program) {
	o, ok := scripted(name)
	if !ok {
		_, p.files = split(args)
		return p
	}
	given := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			p.files = append(p.files, args[i+1:]...)
			i = len(args)
		case strings.HasPrefix(arg, "--"):
			long, value, attached := strings.Cut(arg[2:], "=")
			p.inPlace = p.inPlace || long == "in-place"
			takes := long == "expression" || long == "file" || long == "source" || long == "assign" ||
				long == "field-separator" || long == "include"
			if takes && !attached && i+1 < len(args) {
				i++
				value = args[i]
			}
			p.inPlace = p.inPlace || long == "include" && value == "inplace"
			if long == "expression" || long == "source" {
				p.scripts = append(p.scripts, value)
			}
			given = given || long == "expression" || long == "source" || long == "file"
		case strings.HasPrefix(arg, "-") && arg != "-":
			i += o.short(&p, &given, arg[1:], args[i+1:])
		default:
			p.files = append(p.files, arg)
		}
	}
	if o.first && !given && len(p.files) > 0 {
		p.scripts, p.files = append(p.scripts, p.files[0]), p.files[1:]
	}
	return p
}

// short parses a cluster of options of one letter and returns the number of further arguments
// that it takes.
func (o optionsOf) short(p *program, given *bool, cluster string, rest []string) int {
	for at := range len(cluster) {
		letter := cluster[at]
		if letter == o.inPlace {
			p.inPlace = true
			// What follows is the suffix of the copy; perl and ruby allow further options.
			if o.first || at+1 < len(cluster) && cluster[at+1] == '.' {
				return 0
			}
			continue
		}
		isScript, isFile := strings.IndexByte(o.script, letter) >= 0, strings.IndexByte(o.file, letter) >= 0
		if !isScript && !isFile && strings.IndexByte(o.other, letter) < 0 {
			continue
		}
		value, n := cluster[at+1:], 0
		if value == "" && len(rest) > 0 {
			value, n = rest[0], 1
		}
		if isScript {
			p.scripts = append(p.scripts, value)
		}
		p.inPlace = p.inPlace || letter == 'i' && isFile && value == "inplace" // gawk
		*given = *given || isScript || isFile && letter != 'i'
		return n
	}
	return 0
}

// sedWrites are the commands of sed that write a file: w FILE, W FILE, and the flag w of s.
var sedWrites = lazyregexp.New(`(?:^|[;{}\n]|[0-9$/,]|[/|,#!@:][gpiIme0-9]*)\s*[wW]\s+([^\n;}]+)`)

// sedScript assesses what a script of sed writes.
func (a *assessment) sedScript(text string) {
	for _, m := range sedWrites().FindAllStringSubmatch(text, maxNames) {
		name := strings.TrimSpace(m[1])
		a.named(name)
		a.writes(name)
	}
}

// without returns the words that are not in another list.
func without(words, list []string) []string {
	if len(list) == 0 {
		return words
	}
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(list, w) })
}
