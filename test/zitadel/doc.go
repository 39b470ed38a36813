// Package zitadel holds package authorize against a real authorization server in Go:
// zitadel/oidc with its example's storage and pages, which rotates refresh tokens. It is a
// module of its own, so that the server's dependencies stay out of the bridge's:
//
//	go -C test/zitadel test ./...
package zitadel
