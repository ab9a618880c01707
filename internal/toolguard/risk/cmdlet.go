package risk

import (
	"slices"
	"strings"
)

// psCmdlet returns the name of a cmdlet in lower case, by its name or an alias; empty for other
// commands.
func psCmdlet(name string) string {
	name = strings.ToLower(name)
	aliases := map[string]string{"del": "remove-item", "ri": "remove-item", "erase": "remove-item", "rd": "remove-item",
		"rmdir": "remove-item", "clc": "clear-content", "sc": "set-content", "ac": "add-content", "tee": "tee-object",
		"ni": "new-item", "mi": "move-item", "move": "move-item", "mv": "move-item", "cpi": "copy-item", "copy": "copy-item",
		"cp": "copy-item", "ren": "rename-item", "rni": "rename-item", "cd": "set-location", "sl": "set-location",
		"chdir": "set-location", "pushd": "push-location", "iex": "invoke-expression", "saps": "start-process",
		"start": "start-process", "icm": "invoke-command", "gci": "get-childitem", "dir": "get-childitem",
		"ls": "get-childitem", "gi": "get-item", "where": "where-object", "?": "where-object", "%": "foreach-object",
		"foreach": "foreach-object", "cli": "clear-item"}
	if long, ok := aliases[name]; ok {
		return long
	}
	verb, noun, ok := strings.Cut(name, "-")
	if ok && noun != "" && slices.Contains([]string{"remove", "clear", "set", "add", "out", "new", "move", "copy",
		"rename", "get", "push", "invoke", "start", "stop", "restart", "format", "initialize", "reset", "foreach", "where",
		"tee", "uninstall"}, verb) {
		return name
	}
	return ""
}

// psArgs are the arguments of a cmdlet.
type psArgs struct {
	// named are parameters by their full names in lower case, others the arguments without one.
	named  map[string][]string
	others []string
}

// psParameters are the parameters of cmdlets that this package reads, and whether they take a
// value.
func psParameters() map[string]bool {
	return map[string]bool{"path": true, "literalpath": true, "destination": true, "newname": true, "filter": true,
		"include": true, "exclude": true, "value": true, "encoding": true, "erroraction": true, "itemtype": true,
		"filepath": true, "argumentlist": true, "scriptblock": true, "warningaction": true, "inputobject": true,
		"depth": true, "name": true, "computername": true, "command": true,
		"recurse": false, "force": false, "whatif": false, "file": false, "directory": false, "confirm": false}
}

// psArguments parses the arguments of a cmdlet. Parameters may be shortened.
func psArguments(words []string) psArgs {
	args := psArgs{named: make(map[string][]string)}
	for i := 0; i < len(words); i++ {
		given, ok := strings.CutPrefix(words[i], "-")
		if !ok || given == "" || strings.Contains(given, unknown) {
			args.others = append(args.others, psPath(words[i]))
			continue
		}
		given, value, attached := strings.Cut(strings.ToLower(given), ":")
		name, takes := psParameter(given)
		switch {
		case takes && attached:
			args.named[name] = append(args.named[name], psPath(value))
		case takes && i+1 < len(words):
			i++
			args.named[name] = append(args.named[name], psPath(words[i]))
		case value != "$false":
			args.named[name] = append(args.named[name], "")
		}
	}
	return args
}

// psParameter returns the full name of a parameter, and whether it takes a value. Clusters of
// letters are those of rm.
func psParameter(given string) (name string, takes bool) {
	for _, full := range []string{"recurse", "path", "literalpath", "filter", "force"} {
		if strings.HasPrefix(full, given) {
			return full, psParameters()[full]
		}
	}
	if slices.Contains([]string{"rf", "fr", "lp", "ea"}, given) {
		return map[string]string{"rf": "recurse", "fr": "recurse", "lp": "literalpath", "ea": "erroraction"}[given],
			given == "lp" || given == "ea"
	}
	for full, takes := range psParameters() {
		if len(given) > 2 && strings.HasPrefix(full, given) {
			return full, takes
		}
	}
	return given, false
}

// has reports whether a parameter is given.
func (p *psArgs) has(name string) bool { _, ok := p.named[name]; return ok }

// paths returns the files that a cmdlet is given.
func (p *psArgs) paths() []string {
	return slices.Concat(p.named["path"], p.named["literalpath"], p.named["filepath"], p.others)
}

// cmdlet assesses a cmdlet.
func (a *assessment) cmdlet(name string, args psArgs, p *psParser) {
	paths := args.paths()
	for _, f := range paths {
		a.named(f)
	}
	if args.has("whatif") {
		return
	}
	switch name {
	case "remove-item", "clear-item":
		a.psRemoves(&args, paths, p)
	case "clear-content":
		for _, f := range paths {
			a.removes(f, false)
		}
	case "set-content", "add-content", "out-file", "tee-object":
		for _, f := range paths[:min(1, len(paths))] {
			a.psWrites(f)
		}
	case "new-item":
		for _, f := range slices.Concat(paths, args.named["name"]) {
			a.psWrites(f)
		}
	case "move-item", "rename-item":
		for _, f := range paths[:min(1, len(paths))] {
			a.moves(f)
		}
		a.psTargets(&args, paths)
	case "copy-item":
		a.psTargets(&args, paths)
	case "set-location", "push-location":
		if len(paths) > 0 {
			a.changeDir(paths[0])
		}
	case "get-childitem", "get-item", "where-object":
	default:
		a.psActs(name, &args, p)
	}
}

// psTargets assesses the destination of a copy or a move.
func (a *assessment) psTargets(args *psArgs, paths []string) {
	targets := slices.Concat(args.named["destination"], args.named["newname"])
	if len(targets) == 0 && len(paths) > 1 {
		targets = paths[1:2]
	}
	for _, f := range targets {
		a.writes(f)
	}
}

// psActs assesses cmdlets that run code, and those that are not known.
func (a *assessment) psActs(name string, args *psArgs, p *psParser) {
	words := slices.Concat(args.named["filepath"], args.others, args.named["argumentlist"])
	line := shown(name + " " + strings.Join(words, " "))
	switch verb, noun, _ := strings.Cut(name, "-"); {
	case name == "invoke-expression" && len(words) > 0 && !strings.Contains(words[0], unknown):
		a.powershell(strings.Join(words, " "), p.depth+1)
	case name == "invoke-expression":
		a.add(Unreadable, line)
	case name == "start-process" && len(words) > 0:
		if program, rest := words[0], strings.Join(words[1:], " "); p.depth < maxNested {
			a.words(append([]string{programName(program)}, strings.Fields(rest)...), p.depth+1)
		}
	case name == "foreach-object":
		a.psEach(p)
	case slices.Contains([]string{"volume", "disk", "partition"}, noun) && verb != "get":
		a.add(DeleteAll, line)
	case (verb == "remove" || verb == "clear" || verb == "reset") && !slices.Contains([]string{"variable", "module", "job",
		"event", "alias", "psdrive", "pssession", "host", "history", "typedata", "itemproperty", "errorrecord",
		"psbreakpoint", "culture"}, noun):
		a.add(Unreadable, line)
	}
}

// psRemoves assesses Remove-Item with its paths, or with those of the pipeline.
func (a *assessment) psRemoves(args *psArgs, paths []string, p *psParser) {
	if len(paths) == 0 {
		starts, by := p.listFolders()
		if starts == nil {
			a.add(DeleteFiles, "Remove-Item of the pipeline")
			return
		}
		a.removesBelow(starts, by)
		return
	}
	by := selection{narrow: args.has("include") || args.has("exclude") || args.has("filter")}
	for _, f := range paths {
		drive, _, isDrive := strings.Cut(f, ":")
		switch {
		case isDrive && slices.Contains([]string{"env", "variable", "function", "alias"}, strings.ToLower(drive)):
		case isDrive && strings.HasPrefix(strings.ToLower(drive), "hk"):
			a.add(WriteOutside, f)
		case by.narrow:
			a.removesBelow([]string{withoutWildcards(f)}, by)
		default:
			a.removes(f, args.has("recurse"))
		}
	}
}

// psEach assesses a block that runs for each file of a pipeline.
func (a *assessment) psEach(p *psParser) {
	if a.isTrial { // a block in a block is assessed with it
		return
	}
	starts, by := p.listFolders()
	for _, block := range p.blocks {
		inner := newAssessment(a.at)
		inner.isTrial = true
		inner.powershell(strings.TrimSuffix(block, "}"), p.depth+1)
		if starts != nil && slices.ContainsFunc(inner.found, func(f Finding) bool {
			return f.Pattern == DeleteFiles || f.Pattern == DeleteTree
		}) {
			a.removesBelow(starts, by)
		}
	}
}

// listFolders returns the folders whose files the pipeline lists before its current command, and
// which of these it selects.
func (p *psParser) listFolders() (starts []string, by selection) {
	for _, words := range p.before {
		if len(words) == 0 {
			continue
		}
		switch psCmdlet(programName(words[0])) {
		case "get-childitem", "get-item":
			args := psArguments(words[1:])
			starts = args.paths()
			if len(starts) == 0 {
				starts = []string{"."}
			}
			by.narrow = args.has("filter") || args.has("include") || args.has("exclude")
			for i, start := range starts {
				if bare := withoutWildcards(start); bare == "" {
					starts[i] = "."
				}
			}
		case "where-object":
			by.narrow = true
		}
	}
	return starts, by
}
