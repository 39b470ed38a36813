package mrtr

// Size is how many bytes a flow keeps, from one event to the next, of what its server and its
// client have said since its request, and of its headers: all of it that either can make grow. The params
// are not in it, which are the request's.
func (f *Flow) Size() int {
	size := len(f.Header) + len(f.RequestState) + len(f.Note) + len(f.Progress.Message)
	for i := range f.Inputs {
		in := &f.Inputs[i]
		size += len(in.Key) + len(in.Params) + len(in.ElicitationID) + len(in.Response)
	}
	for i := range f.URLs {
		m := &f.URLs[i]
		size += len(m.URL) + len(m.Message) + len(m.ElicitationID)
	}
	if f.Task != nil {
		size += len(f.Task.ID) + len(f.Task.Message)
	}
	return size
}

// hoards reports whether the answers that wait for others are too much with the newest one.
func (f *Flow) hoards(newest *Input) bool {
	before, open := 0, false
	for i := range f.Inputs {
		in := &f.Inputs[i]
		open = open || in.Response == nil
		if in != newest {
			before += len(in.Response)
		}
	}
	return open && before > 0 && before+len(newest.Response) > maxWaitingAnswers
}

// Awaits reports whether the flow waits for more than the answer under key.
func (f *Flow) Awaits(key string) bool {
	for i := range f.Inputs {
		if in := &f.Inputs[i]; in.Response == nil && in.Key != key {
			return true
		}
	}
	return false
}
