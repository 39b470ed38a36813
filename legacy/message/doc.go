// Package message has what the transports share about messages: arrays of them, the
// errors that a transport makes by itself, the text in which they leave, and what
// differs by negotiated version. It keeps no state but spare memory.
package message
