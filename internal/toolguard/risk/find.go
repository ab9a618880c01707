package risk

import (
	"slices"
	"strings"
)

// selection is what the expression of find selects below its folders.
type selection struct {
	// narrow is set if it selects some files only, product if these are created by tools.
	narrow, product bool
}

// findStarts divides the arguments of find into its folders and its expression.
func findStarts(args []string) (starts, expression []string) {
	for len(args) > 0 && (slices.Contains([]string{"-H", "-L", "-P"}, args[0]) || strings.HasPrefix(args[0], "-O")) {
		args = args[1:]
	}
	at := slices.IndexFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "-") || arg == "(" || arg == "!" || arg == ","
	})
	if at < 0 {
		at = len(args)
	}
	if starts = args[:at]; at == 0 {
		starts = []string{"."}
	}
	return starts, args[at:]
}

// find assesses -delete and -exec of find.
func (a *assessment) find(args []string, depth int) {
	starts, expression := findStarts(args)
	f := finder{args: expression}
	f.delete = func(by selection) { a.removesBelow(starts, by) }
	f.exec = func(command []string, by selection) {
		for i := range command {
			command[i] = strings.ReplaceAll(command[i], "{}", unknown)
		}
		a.assessSelected(command, starts, by, depth)
	}
	f.list()
}

// fd assesses -x and -X of fd, which run a command for the files that it finds.
func (a *assessment) fd(args []string, depth int) {
	at := slices.IndexFunc(args, func(arg string) bool {
		return slices.Contains([]string{"-x", "-X", "--exec", "--exec-batch"}, arg)
	})
	if at < 0 || at+1 == len(args) {
		return
	}
	command := append(slices.Clone(args[at+1:]), unknown)
	options, others := split(args[:at])
	by := selection{narrow: has(options, 'e', "extension")}
	starts := []string{"."}
	if len(others) > 0 {
		by.narrow = by.narrow || others[0] != "." && others[0] != ""
		starts = append(starts[:0], others[1:]...)
	}
	if len(starts) == 0 {
		starts = []string{"."}
	}
	a.assessSelected(command, starts, by, depth)
}

// assessSelected assesses a command that runs for the files that a program selects below folders.
func (a *assessment) assessSelected(command, starts []string, by selection, depth int) {
	switch {
	case depth >= maxNested:
		a.add(Unreadable, shown(strings.Join(command, " ")))
	case a.deletes(command, depth):
		a.removesBelow(starts, by)
	default:
		a.words(command, depth+1)
	}
}

// finder parses the expression of find: lists of tests and actions that are joined by -a, which
// may be left out, and by -o.
type finder struct {
	args []string
	// delete and exec are called for actions, with what was selected before them.
	delete func(selection)
	exec   func([]string, selection)
}

// next returns the next argument and removes it.
func (f *finder) next() string {
	if len(f.args) == 0 {
		return ""
	}
	arg := f.args[0]
	f.args = f.args[1:]
	return arg
}

// list parses the whole expression.
func (f *finder) list() selection { return f.alternatives(selection{}, 0) }

// maxParens limits the nesting of parentheses.
const maxParens = 20

// alternatives parses a list with -o and returns what each part selects.
func (f *finder) alternatives(outer selection, depth int) selection {
	all := selection{narrow: true, product: true}
	for {
		one := f.all(outer, depth)
		all.narrow, all.product = all.narrow && one.narrow, all.product && one.product
		if len(f.args) == 0 || f.next() == ")" {
			return all
		}
	}
}

// all parses a list with -a up to -o, a comma, or the end of the parentheses.
func (f *finder) all(outer selection, depth int) selection {
	by, negated := outer, false
	for len(f.args) > 0 && !slices.Contains([]string{"-o", "-or", ",", ")"}, f.args[0]) {
		one := selection{}
		switch arg := f.next(); arg {
		case "!", "-not":
			negated = !negated
			continue
		case "(":
			if depth >= maxParens {
				f.args = nil
				return by
			}
			one = f.alternatives(by, depth+1)
		case "-delete":
			if f.delete != nil {
				f.delete(by)
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			f.action(by)
		default:
			one = f.test(arg)
		}
		if !negated {
			by.narrow, by.product = by.narrow || one.narrow, by.product || one.product
		}
		negated = false
	}
	return by
}

// action parses the command of -exec.
func (f *finder) action(by selection) {
	end := slices.IndexFunc(f.args, func(w string) bool { return w == ";" || w == "+" })
	if end < 0 {
		end = len(f.args)
	}
	command := slices.Clone(f.args[:end])
	f.args = f.args[min(end+1, len(f.args)):]
	if f.exec != nil && len(command) > 0 {
		f.exec(command, by)
	}
}

// test parses a test and its argument.
func (f *finder) test(name string) selection {
	switch {
	case name == "-empty":
		return selection{narrow: true, product: true}
	case slices.Contains([]string{"-nouser", "-nogroup", "-executable"}, name):
		return selection{narrow: true}
	case slices.Contains([]string{"-type", "-xtype", "-maxdepth", "-mindepth", "-fstype", "-regextype", "-printf",
		"-fprint", "-fls", "-fprint0"}, name):
		f.next()
		return selection{}
	case slices.Contains([]string{"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-lname"}, name):
		pattern := f.next()
		return selection{narrow: withoutWildcards(strings.TrimPrefix(pattern, "./")) != "", product: product(pattern)}
	case slices.Contains([]string{"-regex", "-iregex", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-size",
		"-user", "-group", "-perm", "-inum", "-links", "-samefile", "-used", "-uid", "-gid"}, name),
		strings.HasPrefix(name, "-newer"), strings.HasPrefix(name, "-anewer"), strings.HasPrefix(name, "-cnewer"):
		return selection{narrow: f.next() != ".*"}
	}
	return selection{}
}
