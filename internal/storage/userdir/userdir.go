package userdir

import (
	"path/filepath"
	"runtime"
)

// Config returns the folder of the user's settings: perdure in $XDG_CONFIG_HOME, or else in
// $HOME/.config. It is "" without both variables, and relative if they are.
func Config(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if home := getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "perdure")
}

// Worktrees returns the folder of the worktrees of loops: perdure/worktrees in $XDG_DATA_HOME,
// or else in $HOME/.local/share, on Windows perdure-worktrees in %LOCALAPPDATA%. It is not in
// the folder of [State], because agents work in it. It is "" if none is an absolute path.
func Worktrees(getenv func(string) string) string {
	if data := getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "perdure", "worktrees")
	}
	if local := getenv("LOCALAPPDATA"); runtime.GOOS == "windows" && local != "" {
		return filepath.Join(local, "perdure-worktrees")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "perdure", "worktrees")
	}
	return ""
}

// State returns the folder of the user's state: perdure in $XDG_STATE_HOME, or else in
// $HOME/.local/state, on Windows in %LOCALAPPDATA%. It is "" if none is an absolute path.
func State(getenv func(string) string) string {
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "perdure")
	}
	if local := getenv("LOCALAPPDATA"); runtime.GOOS == "windows" && local != "" {
		return filepath.Join(local, "perdure")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "perdure")
	}
	return ""
}

// HeldOut returns the folder of the held-out checks of loops, in that of [State]; "" if there is none.
func HeldOut(getenv func(string) string) string {
	dir := State(getenv)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "held-out")
}

// Sockets returns the folders for sockets of programs that this process starts, the best first:
// perdure in $XDG_RUNTIME_DIR, and the folder of [State].
func Sockets(getenv func(string) string) []string {
	var dirs []string
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, filepath.Join(dir, "perdure"))
	}
	if dir := State(getenv); dir != "" {
		dirs = append(dirs, dir)
	}
	return dirs
}
