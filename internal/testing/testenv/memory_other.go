//go:build !linux

package testenv

// MemoryDir returns "": not every machine has a folder in memory.
func MemoryDir() string { return "" }
