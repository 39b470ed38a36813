package downstream

import "errors"

// ErrGone says that a conversation cannot be brought back.
var ErrGone = errors.New("the session cannot be brought back")

// ErrForeignEra says that a conversation is over, for its server has become one that it is nothing for.
var ErrForeignEra = errors.New("the session's server has become another one")

// ErrNotHere says that nothing of what a message is about is in this process.
var ErrNotHere = errors.New("it is not in this process")

// ErrCancelled is why the context of a request that belongs to no session ends, when its client
// has cancelled it.
var ErrCancelled = errors.New("cancelled by the client")

// ErrLapsed is why the context of a request ends that only listens, when its credentials have had their time.
var ErrLapsed = errors.New("the credentials of this request are no longer valid; try again with new ones")
