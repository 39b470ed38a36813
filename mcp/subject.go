package mcp

// HasName reports whether a request's params name a tool or a prompt, under "name". What others have there may be anything, be it a
// person's name, and is told to nobody.
func HasName(method string) bool { return method == MethodToolsCall || method == MethodPromptsGet }

// HasURI reports whether a request's params name a resource, under "uri".
func HasURI(method string) bool {
	return method == MethodResourcesRead || method == MethodResourcesSubscribe || method == MethodResourcesUnsubscribe
}
