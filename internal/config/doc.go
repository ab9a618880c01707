// Package config finds the project's .perdure folder and reads the settings: flags
// override the environment, which overrides the file config.yaml, which overrides
// the defaults. All problems are reported together, and every value has its origin.
//
// All settings are in one table (settings.go, loop.go, metrics.go). The file, the
// environment variables, the flags, the template of the file and the list of values
// are derived from it.
//
// A settings file can come with a repository. Its settings that act ([Loaded.Acting]) are
// used only if the record in package trust, below this folder, has their hash.
package config
