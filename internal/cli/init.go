package cli

import (
	"errors"
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
	var yes bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create .perdure with a commented settings file",
		Long: "Create the folder .perdure in the working directory, with a settings file that lists all settings with " +
			"their defaults, and a .gitignore. Existing files are not changed. Commands that write create the folder " +
			"themselves, without a settings file.\n\n" +
			"Below a folder that has a .perdure, whose settings and trees the commands use here too, init asks first. " +
			"Without a terminal it fails with exit status 2, unless --yes is given.",
		GroupID: env.GroupManage,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if l, err := a.LoadUntrusted(cmd, a.Cwd); err == nil {
				if err := a.CheckRemoved(l); err != nil {
					return err
				}
			}
			dir := filepath.Join(a.Cwd, config.FolderName)
			if override := a.Getenv("PERDURE_DIR"); override != "" {
				dir = a.Path(override)
			} else if err := a.checkAbove(dir, yes); err != nil {
				return err
			}
			return a.initialize(dir)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// checkAbove returns an error if the commands use a .perdure of a folder above here, and the user does
// not agree to have another one.
func (a *app) checkAbove(dir string, yes bool) error {
	above, err := config.Find(a.Cwd)
	if err != nil || above == "" || above == dir {
		return nil //nolint:nilerr // it is not used, so that another one is needed
	}
	a.Note("commands use %s here; with a folder here they do not see its settings and trees", above)
	if yes || a.Agrees("create "+dir+"?") {
		return nil
	}
	return env.UsageError("`perdure init --yes` creates another one here", "%s exists above this folder", above)
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
		a.Printf("wrote %s; the settings file exists already\n", filepath.Join(dir, ".gitignore"))
	default:
		a.Printf("nothing to do: %s exists already\n", file)
	}
	return nil
}

// writeNew writes a file unless it exists.
func writeNew(name, text string) (made bool, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := f.WriteString(text); err != nil {
		_, _ = f.Close(), os.Remove(name) // leave no partial file
		return false, err
	}
	return true, f.Close()
}

func unwritable(err error) error {
	hint := "check the folder's permissions, or set PERDURE_DIR to another folder"
	if errors.Is(err, syscall.ENOSPC) {
		hint = "the disk is full; free some space"
	}
	return &perdure.Error{Code: perdure.CodeUnavailable, Op: "create folder", Err: err, Hint: hint}
}
