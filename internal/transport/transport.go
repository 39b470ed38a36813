// Package transport frames messages on connections for both hops: JSON-RPC
// over WebSocket frames and over lines of text. It owns the framing, its limits
// and its deadlines, and knows nothing of what the messages say. It is the only
// package that touches gorilla/websocket.
package transport

import "errors"

// ErrTooLarge says that a peer sent a message above the limit.
var ErrTooLarge = errors.New("message is larger than the limit")
