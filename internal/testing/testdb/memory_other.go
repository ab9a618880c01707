//go:build unix && !linux

package testdb

// memoryFolder returns "": only Linux has a folder in memory on every machine.
func memoryFolder() string { return "" }
