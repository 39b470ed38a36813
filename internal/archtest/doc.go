// Package archtest holds the tests that check the repository itself. It has no code that a
// program could use. They hold that
//
//   - packages import what docs/architecture.md says, and each has its row there; what
//     libraries only one room may use (imports_test.go)
//   - rooms above 1,500 lines say on that page why (rooms_test.go)
//   - the files of a room can be read in an order, and a type that has state has its methods
//     in three files at most (ties_test.go)
//   - every lock has its place in the order on that page, and methods whose names end in
//     Locked are called under one (locks_test.go)
//   - clients of net/http bound the heads of responses (heads_test.go)
//   - what peers say is not decoded by encoding/json, which reads names without regard to case, but
//     where nothing rests on it (names_test.go)
//   - versions are compared where invariant 15 of AGENTS.md says (versions_test.go)
//   - errors of the bridge's own are made by internal/fault (errors_test.go)
//   - no test sleeps outside of a bubble of testing/synctest (imports_test.go)
//   - links in the documentation lead somewhere, and decisions are numbered once (docs_test.go)
//   - every threat of docs/security.md and every defect of docs/regressions.md names tests
//     that exist (security_test.go)
//   - every directory of test/ has a row in its README, whose stages and make targets exist
//     (runs_test.go)
package archtest
