package rawjson

// Long strings are most of what the bridge carries: a tool's result is often one
// string of many kilobytes. On amd64 with AVX2 they are gone over 64 bytes at a
// time, 64 KiB with many escapes and accents in 6 µs instead of 100 (validating)
// and in 2.5 µs instead of 60 (skipping). Everything else about a string, its
// end, its faults, \u escapes and what is too short to matter, is left to the
// loops of validate.go and scan.go: what a block function does not accept, it
// leaves alone, and FuzzBlocks compares with the loops on their own.
//
//	checkBlocks(b, i) returns i or an index after it up to which the string
//	whose contents go on at i is valid.
//	skipBlocks(b, i) returns i or an index after it, before which the string
//	whose contents go on at i does not end.
//
// In both cases i and the result are the index of no escaped character, and of
// the first byte of one.

// loopLead is how many bytes of a string the validating loop takes before it
// tries checkBlocks, at first and after that stopped. checkBlocks looks back at
// three of them.
const loopLead = 32
