//go:build !linux

package testenv

// MemoryDir returns "": only Linux has a folder in memory on every machine.
func MemoryDir() string { return "" }
