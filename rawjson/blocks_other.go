//go:build !amd64 || purego

package rawjson

func checkBlocks(_ []byte, i int) int { return i }

func skipBlocks(_ []byte, i int) int { return i }
