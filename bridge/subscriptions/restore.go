package subscriptions

import "github.com/mcpbridge/bridge/bridge/catalog"

// Here is what a session needs that another process began: word of what it may have
// missed while nobody listened (C-20).

// Missed tells a session that every list which the server announces may have changed.
func Missed(s Session, lists catalog.Lists) {
	for _, method := range announcements(lists) {
		s.Announce(method, method, nil)
	}
}
