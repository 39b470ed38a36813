// Package testprocess does to processes what tests do to them: it stops them, lets them go on,
// and looks whether they are there. Where the system knows no such thing it says so, and the tests
// of processes fail; what compiles there is vetted there.
package testprocess
