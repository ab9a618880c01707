package risk

import (
	"path"
	"slices"
	"strings"
)

// unwrapped removes programs that only run another one.
func unwrapped(words []string) []string {
	for len(words) > 0 {
		name := programName(words[0])
		if n := launcherWords(words); n > 0 {
			words = words[n:]
			continue
		}
		if !wraps(name) {
			return words
		}
		words = words[1:]
		if at := slices.IndexFunc(words, func(w string) bool { return acts(path.Base(w)) }); at >= 0 && name != "env" {
			words = words[at:] // after options with unknown arguments
			continue
		}
		for len(words) > 0 && (strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=") || isNumber(words[0])) {
			words = words[optionWords(name, words[0]):]
		}
	}
	return words
}

// launcherWords returns the number of words with which a package manager runs a program of its
// packages, with their options; 0 for other commands.
func launcherWords(words []string) int {
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	n := 0
	switch name := path.Base(words[0]); {
	case slices.Contains([]string{"npx", "bunx", "pnpx", "uvx"}, name):
		n = 1
	case slices.Contains([]string{"npm exec", "npm x", "pnpm exec", "pnpm dlx", "yarn dlx", "yarn exec", "bundle exec",
		"poetry run", "uv run", "pipenv run", "pipx run", "pdm run", "rye run", "hatch run", "mise exec", "bun x",
		"composer exec"}, name+" "+second):
		n = 2
	case (name == "yarn" || name == "pnpm" || name == "bun") && acts(second):
		return 1
	}
	for n > 0 && n < len(words) && strings.HasPrefix(words[n], "-") {
		if slices.Contains([]string{"-p", "--package", "-c", "--with"}, words[n]) {
			n++
		}
		n++
	}
	return min(n, len(words))
}

// optionWords returns the number of words of an option of env.
func optionWords(name, option string) int {
	if name == "env" && slices.Contains([]string{"-u", "--unset", "-C", "--chdir"}, option) {
		return 2
	}
	return 1
}

// wraps reports whether a program runs another one.
func wraps(name string) bool {
	return slices.Contains([]string{"sudo", "doas", "env", "nohup", "time", "command", "builtin", "exec", "nice", "ionice",
		"setsid", "stdbuf", "timeout", "busybox", "toybox", "strace", "ltrace", "flock", "unshare", "chroot", "xvfb-run",
		"taskset", "chrt", "numactl", "runuser", "systemd-run", "fakeroot", "firejail", "bwrap", "setarch", "caffeinate",
		"entr", "valgrind", "dotenv", "cross-env", "direnv", "gtimeout", "unbuffer"}, name)
}

// acts reports whether this package assesses a program.
func acts(name string) bool {
	return shells(name) || interpreter(name) || slices.Contains([]string{"rm", "unlink", "rmdir", "shred", "trash", "git",
		"powershell", "cmd", "find", "xargs", "rimraf", "del-cli", "tee", "truncate", "sed", "mv", "cp", "ln", "rsync", "dd",
		"chmod", "chown", "perdure", "pkill", "killall"}, name)
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.smhd") == "" && s[0] >= '0' && s[0] <= '9'
}

// envOptions handles options of env that contain the command: -S has its words in one, -C
// its folder.
func (a *assessment) envOptions(words []string, depth int) (rest []string, done bool) {
	at := slices.IndexFunc(words, func(w string) bool { return path.Base(w) == "env" })
	if at < 0 || len(unwrapped(words[:at])) > 0 {
		return words, false
	}
	words = words[at:]
	for i, w := range words[1:] {
		text, split := strings.CutPrefix(w, "--split-string=")
		switch {
		case split:
		case (w == "-S" || w == "--split-string" || w == "-vS" || w == "-iS") && i+2 < len(words):
			text, split = words[i+2], true
		case strings.HasPrefix(w, "-S"):
			text, split = w[2:], true
		case (w == "-C" || w == "--chdir") && i+2 < len(words):
			a.changeDir(words[i+2])
		case !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") && i > 0 && optionWords("env", words[i]) == 1:
			return words, false
		}
		if split {
			a.nested(text, depth)
			return nil, true
		}
	}
	return words, false
}

// container assesses a command in a container with mounted folders of the workspace.
func (a *assessment) container(args []string, depth int) {
	var mounts [][2]string
	mount := func(spec string) {
		if from, to, ok := strings.Cut(spec, ":"); ok {
			to, _, _ = strings.Cut(to, ":")
			mounts = append(mounts, [2]string{from, to})
		}
	}
	for i, w := range args {
		text, ok := strings.CutPrefix(w, "--volume=")
		switch {
		case ok:
			mount(text)
		case (w == "-v" || w == "--volume") && i+1 < len(args):
			mount(args[i+1])
		case strings.HasPrefix(w, "type=bind") || strings.HasPrefix(w, "--mount=type=bind"):
			mounts = append(mounts, bound(w))
		}
	}
	at := slices.IndexFunc(args, func(w string) bool { return acts(path.Base(w)) })
	if len(mounts) == 0 || at < 0 {
		return
	}
	inner := slices.Clone(args[at:])
	for i := range inner {
		for _, m := range mounts {
			if len(m[1]) > 1 && strings.HasPrefix(m[1], "/") {
				inner[i] = strings.ReplaceAll(inner[i], m[1], m[0])
			}
		}
	}
	a.words(inner, depth)
}

// bound parses an option --mount.
func bound(spec string) (m [2]string) {
	for part := range strings.SplitSeq(spec, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "source", "src":
			m[0] = value
		case "target", "dst", "destination":
			m[1] = value
		}
	}
	return m
}

// steers assesses commands with which a person controls a loop, or decides what is trusted.
func (a *assessment) steers(args []string) {
	options, others := split(args)
	decides := len(others) > 1 && others[0] == "loop" &&
		slices.Contains([]string{"answer", "pause", "resume", "abort", "false-alarm"}, others[1]) ||
		len(others) > 1 && others[0] == "answer" || len(others) > 2 && others[0] == "var" && others[2] == "Final" ||
		len(others) > 1 && others[0] == "hook" && others[1] == "allow" ||
		len(others) > 0 && (others[0] == "install" || others[0] == "uninstall") && !has(options, 0, "dry-run") ||
		len(others) == 1 && others[0] == "trust" && !has(options, 0, "show") && !has(options, 0, "list") ||
		len(others) > 0 && others[0] == "verify-log" && has(options, 0, "accept")
	if decides {
		a.add(DecideForPerson, shown("perdure "+strings.Join(args, " ")))
	}
}
