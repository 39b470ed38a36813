package session

import "github.com/mcpbridge/bridge/internal/budget"

// Cost is what a session is charged for besides what its client says of itself, in
// bytes: its tables and timers.
const Cost = 8 << 10

// OpenAccount opens the account of a new session whose client said so much of itself,
// or says why there is no room for it.
func OpenAccount(memory *budget.Budget, tenant string, declared int) (*budget.Account, error) {
	account, err := memory.Open(tenant)
	if err != nil {
		return nil, err
	}
	if err := account.Take(Cost + declared); err != nil {
		account.Close()
		return nil, err
	}
	return account, nil
}
