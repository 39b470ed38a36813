package downstream

import "context"

// losing is the key of a context's Losing.
type losing struct{}

// Losing returns ctx for Backend.Open and Restore: the session tells to of everything that
// its client gets in words of its older revision or not at all, by a word of
// translate.Losses. It is called on the path of a call and under its locks, and blocks
// nobody.
func Losing(ctx context.Context, to func(what string)) context.Context {
	return context.WithValue(ctx, losing{}, to)
}

// LosingTo returns whom a session of ctx tells; nil: nobody.
func LosingTo(ctx context.Context) func(what string) {
	to, _ := ctx.Value(losing{}).(func(string))
	return to
}
