// Package view is the live view of the admin listener: pages that say why a call
// hangs before they show its messages. It owns what is said and shown. What it
// shows is read anew for each page from what the rooms of the bridge know, and it
// says nothing of what messages contain unless that was allowed.
package view
