package risk

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// CommandPrefix begins the keys of answers to commands that the user adds to the class
// DestroyExternal, such as "command make db-wipe".
const CommandPrefix = "command "

// CommandsKey is the section of these commands in the setting loop.risks.
const CommandsKey = "commands"

// externalEntry describes commands: the words that follow the name of the program, and options
// that have to be present. A word can have alternatives and wildcards; "**" are any words.
type externalEntry struct {
	words, options []string
}

// parseExternal divides an entry into the names of its program and the rest.
func parseExternal(text string) (programs []string, e externalEntry) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil, e
	}
	for _, f := range fields[1:] {
		if strings.HasPrefix(f, "-") {
			e.options = append(e.options, f)
		} else {
			e.words = append(e.words, f)
		}
	}
	return strings.Split(path.Base(fields[0]), "|"), e
}

// externalEntries returns the entries of the table by the names of programs.
var externalEntries = sync.OnceValue(func() map[string][]externalEntry {
	byName := make(map[string][]externalEntry)
	for line := range strings.Lines(externalTable) {
		names, e := parseExternal(line)
		for _, name := range names {
			byName[name] = append(byName[name], e)
		}
	}
	return byName
})

// fits reports whether the arguments of a command fit an entry. Words that follow an option may
// be its value.
func (e *externalEntry) fits(args []string) bool {
	for _, option := range e.options {
		if !slices.ContainsFunc(args, func(arg string) bool { return fitsOption(option, arg) }) {
			return false
		}
	}
	wanted, value, free := e.words, false, false
	for _, arg := range args {
		for len(wanted) > 0 && wanted[0] == "**" {
			wanted, free = wanted[1:], true
		}
		switch {
		case len(wanted) == 0:
			return true
		case strings.HasPrefix(arg, "-"):
			value = !strings.Contains(arg, "=")
			continue
		case fitsWord(wanted[0], arg):
			wanted, free = wanted[1:], false
		case !free && !value:
			return false
		}
		value = false
	}
	return len(wanted) == 0
}

func fitsOption(wanted, arg string) bool {
	return slices.ContainsFunc(strings.Split(wanted, "|"), func(w string) bool {
		return arg == w || strings.HasPrefix(arg, w+"=")
	})
}

func fitsWord(wanted, arg string) bool {
	arg = strings.ToLower(arg)
	return slices.ContainsFunc(strings.Split(strings.ToLower(wanted), "|"), func(w string) bool {
		return matches(w, arg) || strings.Contains(w, ".") && matches(w, path.Base(arg))
	})
}

// external assesses a command that can destroy what no snapshot of files has: databases,
// infrastructure, volumes, and published packages.
func (a *assessment) external(name string, args []string, depth int) {
	line := shown(strings.TrimSpace(name + " " + strings.Join(args, " ")))
	if set, ok := a.commandAnswer(name, args); ok {
		a.addSet(DestroyExternal, line, set)
		return
	}
	if isTrial(args) {
		return
	}
	for i := range externalEntries()[name] {
		if externalEntries()[name][i].fits(args) {
			a.add(DestroyExternal, line)
			return
		}
	}
	switch {
	case databaseClient(name):
		if !slices.Contains(args, ":memory:") && slices.ContainsFunc(args, func(arg string) bool {
			return strings.ContainsAny(arg, " (") && destroysData(arg)
		}) {
			a.add(DestroyExternal, line)
		}
	case slices.Contains([]string{"curl", "http", "https", "wget"}, name),
		name == "gh" && len(args) > 0 && args[0] == "api":
		a.request(args, line)
	case slices.Contains([]string{"docker", "podman", "docker-compose", "kubectl", "oc", "heroku", "fly", "flyctl",
		"vagrant", "lxc", "nerdctl"}, name):
		at := slices.IndexFunc(args, func(arg string) bool {
			return databaseClient(arg) || len(externalEntries()[path.Base(arg)]) > 0
		})
		if at > 0 && depth < maxNested {
			a.external(path.Base(args[at]), args[at+1:], depth+1)
		}
	case name == "ssh":
		a.remote(args, line, depth)
	}
}

// commandAnswer returns the strictest answer that the user has set for a command.
func (a *assessment) commandAnswer(name string, args []string) (answer Answer, ok bool) {
	answer = Allow
	for text, set := range a.at.Commands {
		names, e := parseExternal(text)
		if slices.Contains(names, name) && e.fits(args) {
			ok = true
			if stricter(set, answer) {
				answer = set
			}
		}
	}
	return answer, ok
}

// isTrial reports whether a command only shows what it would do.
func isTrial(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, value, _ := strings.Cut(arg, "=")
		return (name == "--dry-run" || name == "--dryrun" || name == "--help") && value != "none" && value != "false"
	})
}

// databaseClient reports whether a program runs statements that are arguments or its input.
func databaseClient(name string) bool {
	return slices.Contains([]string{"psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "cockroach", "duckdb",
		"clickhouse-client", "clickhouse", "usql", "cqlsh", "snowsql", "bq", "pgcli", "mycli", "mongo", "mongosh",
		"redis-cli", "valkey-cli", "wrangler", "influx", "sqlplus"}, path.Base(name))
}

// request assesses a request that deletes something on another machine.
func (a *assessment) request(args []string, line string) {
	deletes, local, away := false, false, false
	for i, arg := range args {
		upper := strings.ToUpper(arg)
		deletes = deletes || upper == "-XDELETE" || upper == "--REQUEST=DELETE" || upper == "--METHOD=DELETE" ||
			upper == "DELETE" && (i == 0 || slices.Contains([]string{"-X", "--request", "--method"}, args[i-1]))
		_, host, isURL := strings.Cut(arg, "://")
		host, _, _ = strings.Cut(host, "/")
		near := strings.HasPrefix(host, "localhost") || strings.HasPrefix(host, "127.") || strings.HasPrefix(host, "[::1]") ||
			strings.HasPrefix(arg, "localhost") || strings.HasPrefix(arg, "127.") || strings.HasPrefix(arg, ":")
		local, away = local || near, away || isURL && !near
	}
	if deletes && (away || !local) {
		a.add(DestroyExternal, line)
	}
}

// remote assesses a command that runs on another machine, of which there is no snapshot.
func (a *assessment) remote(args []string, line string, depth int) {
	at := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	for at > 0 && at < len(args) && len(args[at-1]) == 2 && strings.Contains("bcDEeFIiJLlmOopQRSWw", args[at-1][1:]) {
		at++ // the value of an option
		for at < len(args) && strings.HasPrefix(args[at], "-") {
			at++
		}
	}
	if at < 0 || at+1 >= len(args) {
		return
	}
	inner := newAssessment(a.at)
	inner.nested(strings.Join(args[at+1:], " "), depth)
	if slices.ContainsFunc(inner.found, func(f Finding) bool { return f.Destructive || f.Level == Critical }) {
		a.add(DestroyExternal, line)
	}
}

// externalTool assesses a tool of another server by its name and its input: one that deletes
// infrastructure, or runs a statement in a database.
func (a *assessment) externalTool(name string, input []byte) {
	short := strings.ToLower(name)
	if set, ok := a.commandAnswer(name, nil); ok {
		a.addSet(DestroyExternal, name, set)
		return
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(short, w) })
	}
	if has("delete", "destroy", "drop", "terminate", "purge", "wipe", "reset", "truncate", "uninstall") &&
		has("database", "project", "cluster", "instance", "bucket", "volume", "namespace", "stack", "branch", "repository",
			"_db", "_table", "pod", "deployment", "kubectl", "collection", "index", "server", "app", "domain") &&
		!has("file", "directory", "folder", "entit") {
		a.add(DestroyExternal, name)
		return
	}
	if !has("sql", "query", "db", "database", "postgres", "mysql", "execute", "supabase", "neon", "bigquery", "snowflake",
		"mongo", "redis") {
		return
	}
	for _, text := range stringsIn(input) {
		if destroysData(text) {
			a.add(DestroyExternal, shown(text))
		}
	}
}
