package downstream

import (
	"context"

	"github.com/mcpbridge/bridge/internal/budget"
)

// charging is the key of a context's Charging.
type charging struct{}

// Charging returns ctx for a request that is handed on to a handler: what is held for it is
// charged to this account, which may be nil.
func Charging(ctx context.Context, account *budget.Account) context.Context {
	return context.WithValue(ctx, charging{}, account)
}

// ChargedTo returns what a request of ctx is charged to; nil: nothing.
func ChargedTo(ctx context.Context) *budget.Account {
	account, _ := ctx.Value(charging{}).(*budget.Account)
	return account
}
