package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

func (a *app) newInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Make the .perdure folder with a commented settings file",
		Long: "Make the folder .perdure in the working directory, with a settings file in which everything is " +
			"commented out, and a .gitignore. Nothing that exists is changed. Commands that write make the folder " +
			"by themselves; init is for those who want to change the settings.",
		GroupID: env.GroupManage,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			dir := filepath.Join(a.Cwd, config.FolderName)
			if override := a.Getenv("PERDURE_DIR"); override != "" {
				dir = override
				if !filepath.IsAbs(dir) {
					dir = filepath.Join(a.Cwd, dir)
				}
			}
			return a.initialize(dir)
		},
	}
}

func (a *app) initialize(dir string) error {
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return unwritable(err)
	}
	made, err := writeNew(filepath.Join(dir, ".gitignore"), "*\n")
	if err != nil {
		return unwritable(err)
	}
	file := filepath.Join(dir, config.FileName)
	madeFile, err := writeNew(file, config.Template())
	switch {
	case err != nil:
		return unwritable(err)
	case madeFile:
		a.Printf("wrote %s\n", file)
	case made:
		a.Printf("wrote %s; the settings file was there already\n", filepath.Join(dir, ".gitignore"))
	default:
		a.Printf("nothing to do: %s is there already\n", file)
	}
	return nil
}

// writeNew writes a file unless there is one of this name.
func writeNew(name, text string) (made bool, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := f.WriteString(text); err != nil {
		_, _ = f.Close(), os.Remove(name) // half a file is worse than none
		return false, err
	}
	return true, f.Close()
}

func unwritable(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: "make folder", Err: err,
			Hint: "the disk is full; free some space"}
	}
	return &perdure.Error{Code: perdure.CodeUnavailable, Op: "make folder", Err: fmt.Errorf("%w", err),
		Hint: "perdure needs to write here; check the folder's permissions, or set PERDURE_DIR"}
}
