package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestProblems has one case for each thing that can be wrong: the source and the
// whole message, where @ stands for the file.
func TestProblems(t *testing.T) {
	const url = "upstream: https://a.example/mcp\n"
	tests := map[string]struct {
		yaml string
		env  []string
		flag []Setting
		want string
	}{
		"unknown key":                 {yaml: url + "profil: strict\n", want: `@:2: unknown key "profil"; did you mean "profile"?`},
		"unknown nested key":          {yaml: url + "limits:\n  rounds: 3\n  state_only_rounds: 3\n", want: `@:4: unknown key "limits.state_only_rounds"; did you mean "state-only-rounds"?`},
		"nothing near":                {yaml: url + "zzz: 1\n", want: `@:2: unknown key "zzz"`},
		"unknown variable":            {yaml: url, env: []string{"BRIDGE_LISTN=:1"}, want: `BRIDGE_LISTN: is no setting of the bridge; did you mean "BRIDGE_LISTEN"?`},
		"unknown flag":                {yaml: url, flag: []Setting{{"nope", nil}}, want: `--nope: is no setting of the bridge`},
		"key twice":                   {yaml: url + "listen: :1\nlisten: :2\n", want: `@:3: is no YAML: mapping key "listen" already defined at [2:1]`},
		"nested without an end":       {yaml: "x: " + strings.Repeat("[", 200_000), want: "@: is nested more than 64 deep in line 1"},
		"objects without an end":      {yaml: strings.Repeat("{a: ", 100_000), want: "@: is nested more than 64 deep in line 1"},
		"entries without an end":      {yaml: "x:\n" + strings.Repeat("- ", 100_000) + "1", want: "@: is nested more than 64 deep in line 2"},
		"a file of more than a MiB":   {yaml: strings.Repeat("#\n", 1<<19+1), want: "@: has more than 1048576 bytes"},
		"broken YAML":                 {yaml: "a: b\n  c: d\n", want: `@:2: is no YAML: the line begins with 2 spaces, which fits none of the lines above it`},
		"two documents":               {yaml: url + "---\n" + url, want: `@: holds more than one YAML document; keep one`},
		"no mapping":                  {yaml: "- a\n", want: `@:1: must be a mapping of keys to values`},
		"section as value":            {yaml: url + "limits: 3\n", want: `@:2: limits: must be a mapping of keys to values`},
		"list as value":               {yaml: url + "path: [a]\n", want: `@:2: path: must be a single value`},
		"value as list":               {yaml: url + "allowed-hosts: a\n", want: `@:2: allowed-hosts: must be a list, like [bridge.example.com]`},
		"list in a list":              {yaml: url + "allowed-hosts: [[a]]\n", want: `@:2: allowed-hosts: must be a single value`},
		"headers as list":             {yaml: url + "headers: [a]\n", want: `@:2: headers: must be a mapping of names to values, like {Authorization: "Bearer …"}`},
		"header in two spellings":     {yaml: url + "headers: {X-A: hush, x-a: hush}\n", want: `@:2: headers: "X-A" and "x-a" are one header, which can have one value only`},
		"header twice":                {yaml: url, flag: []Setting{{"headers", []string{"X-A: hush", "X-A: hush"}}}, want: `--headers: "X-A" and "X-A" are one header, which can have one value only`},
		"header without name":         {yaml: url, flag: []Setting{{"headers", []string{"hush"}}}, want: `--headers: must be written as NAME: VALUE`},
		"parameter without name":      {yaml: url, flag: []Setting{{"auth.parameters", []string{"hush"}}}, want: `--auth.parameters: must be written as NAME: VALUE`},
		"parameter in a variable":     {yaml: url, env: []string{"BRIDGE_AUTH_PARAMETERS=hush"}, want: `BRIDGE_AUTH_PARAMETERS: auth.parameters: must be written as NAME: VALUE`},
		"no value":                    {yaml: url + "path:\n", want: `@:2: path: has no value; give it one or remove the line`},
		"anchor":                      {yaml: url + "path: &p /a\n", want: `@:2: path: uses a YAML anchor, which is not supported; write the value out`},
		"upstreams no list":           {yaml: "upstreams: 3\nupstream: http://a\n", want: `@:1: upstreams: must be a list; begin each entry with "- path: /…"`},
		"number":                      {yaml: url + "limits: {flows: many}\n", want: `@:2: limits.flows: "many" is no whole number`},
		"duration":                    {yaml: url + "timeouts: {flow: 30}\n", want: `@:2: timeouts.flow: "30" is no duration; write a number and a unit, like 500ms, 90s, 10m or 2h`},
		"size":                        {yaml: url + "limits: {message-size: 4}\n", want: `@:2: limits.message-size: "4" is no size; write a whole number and a unit, like 64KiB or 4MiB`},
		"rate":                        {yaml: url + "rates: {session: fast}\n", want: `@:2: rates.session: "fast" is no rate; write a whole number and a time, like 20/s, 600/m or 1000/h, or off`},
		"tier":                        {yaml: url + "rates: {tier: plan}\n", want: `@:2: rates.tier: "plan" is unknown; write claim:NAME or header:NAME`},
		"tiers of nobody":             {yaml: url + "rates: {tiers: {gold: 4}}\n", want: `@:2: rates.tiers: have no effect without rates.tier, which says where a client's tier is found`},
		"tier without number":         {yaml: url + "rates: {tier: 'claim:plan', tiers: {gold: much}}\n", want: `@:2: rates.tiers: "gold" has no number above 0, like 4 or 0.5`},
		"too little memory":           {yaml: url + "limits: {memory: 1MiB}\n", want: `@:2: limits.memory: 1MiB is too little for the bridge itself; use 32MiB or more`},
		"entry's memory":              {yaml: "upstreams:\n- path: /a\n  upstream: http://a\n  limits: {memory: 1GiB}\n", want: `@:4: upstreams[0].limits.memory: cannot be set for a single upstream: it is the whole process's; set it at the top level`},
		"range":                       {yaml: url + "limits: {rounds: 0}\n", want: `@:2: limits.rounds: 0 is out of range; use 1 to 1000`},
		"size range":                  {yaml: url + "limits: {message-size: 1B}\n", want: `@:2: limits.message-size: 1B is out of range; use 1KiB to 1GiB`},
		"size or off":                 {yaml: url + "heap-floor: on\n", want: `@:2: heap-floor: "on" is no size; write a whole number and a unit, like 32MiB, or off`},
		"range of floors":             {yaml: url + "heap-floor: 5GiB\n", want: `@:2: heap-floor: 5GiB is out of range; use off to 4GiB`},
		"choice":                      {yaml: url, env: []string{"BRIDGE_LOG_LEVEL=inof"}, want: `BRIDGE_LOG_LEVEL: log.level: "inof" is unknown; use one of trace, debug, info, warn, error`},
		"choice near":                 {yaml: url + "modern: refused\n", want: `@:2: modern: "refused" is unknown; use one of pass, refuse; did you mean "refuse"?`},
		"draft answers":               {yaml: url + "draft: off\ndraft-answers: wrapped\n", want: `@:3: draft-answers: has no effect while draft is off; remove it, or set draft to auto or on`},
		"listen":                      {yaml: url + "listen: localhost\n", want: `@:2: listen: "localhost" is no address; write HOST:PORT, like 127.0.0.1:8080, or unix:PATH`},
		"port":                        {yaml: url + "listen: :99999\n", want: `@:2: listen: ":99999" has no port from 0 to 65535 after the colon`},
		"socket":                      {yaml: url + "listen: 'unix:'\n", want: `@:2: listen: "unix:" names no socket; write unix:/run/bridge.sock`},
		"public admin":                {yaml: url + "admin: {listen: ':8081'}\n", want: `@:2: admin.listen: ":8081" can be reached from other machines; use 127.0.0.1:PORT or unix:PATH, or set admin.tls.cert, admin.tls.key and admin.token-file`},
		"admin without token":         {yaml: url + "admin: {listen: ':8081', tls: {cert: c, key: k}}\n", want: `@:2: admin.listen: ":8081" can be reached from other machines; use 127.0.0.1:PORT or unix:PATH, or set admin.tls.cert, admin.tls.key and admin.token-file`},
		"admin address":               {yaml: url + "admin: {listen: here}\n", want: `@:2: admin.listen: "here" is no address; write HOST:PORT, like 127.0.0.1:8080, or unix:PATH`},
		"unused token":                {yaml: url + "admin: {token-file: t}\n", want: `@:2: admin.token-file: has no effect without admin.listen`},
		"key without cert":            {yaml: url + "tls: {key: k.pem}\n", want: `tls.cert: is missing; tls.key belongs to it`},
		"cert without key":            {yaml: url + "upstream-tls: {cert: c.pem}\n", want: `upstream-tls.key: is missing; upstream-tls.cert needs it`},
		"a wildcard within an origin": {yaml: url + "allowed-origins: ['http://*.com']\n", want: `@:2: allowed-origins: "http://*.com" is no origin; a wildcard stands for any origin when it is alone, and for nothing within one: name each`},
		"a wildcard within a host":    {yaml: url + "allowed-hosts: ['*.example.com']\n", want: `@:2: allowed-hosts: "*.example.com" is no host; a wildcard stands for any host when it is alone, and for nothing within one: name each`},
		"admin at the same address":   {yaml: url + "listen: 127.0.0.1:9\nadmin: {listen: 'localhost:9'}\n", want: `@:3: admin.listen: "localhost:9" is what listen has already ("127.0.0.1:9"); choose another port`},
		"admin at the default":        {yaml: url + "admin: {listen: 127.0.0.1:8080}\n", want: `@:2: admin.listen: "127.0.0.1:8080" is what listen has already ("127.0.0.1:8080"); choose another port`},
		"admin at all addresses":      {yaml: url + "listen: ':9'\nadmin: {listen: '[::1]:9'}\n", want: `@:3: admin.listen: "[::1]:9" is what listen has already (":9"); choose another port`},
		"admin at the same socket":    {yaml: url + "listen: unix:/run/b\nadmin: {listen: unix:/run//b}\n", want: `@:3: admin.listen: "unix:/run//b" is what listen has already ("unix:/run/b"); choose another port`},
		"its own server":              {yaml: "upstream: http://localhost:8080/mcp\n", want: `@:1: upstream: is the bridge's own endpoint ("127.0.0.1:8080/mcp"); give the URL of the server's`},
		"its own server everywhere":   {yaml: "listen: ':80'\nupstream: http://127.0.0.2/mcp\n", want: `@:2: upstream: is the bridge's own endpoint (":80/mcp"); give the URL of the server's`},
		"an entry that is its own":    {yaml: "upstreams:\n- path: /a\n  upstream: http://127.0.0.1:8080/b\n- path: /b\n  upstream: http://127.0.0.1:8080/b\n", want: `@:5: upstreams[1].upstream: is the bridge's own endpoint ("127.0.0.1:8080/b"); give the URL of the server's`},
		"origin":                      {yaml: url + "allowed-origins: [app.example.com]\n", want: `@:2: allowed-origins: "app.example.com" is no origin; write SCHEME://HOST[:PORT] without a path, like https://app.example.com`},
		"origin with path":            {yaml: url + "allowed-origins: [https://a.example/]\n", want: `@:2: allowed-origins: "https://a.example/" is no origin; write SCHEME://HOST[:PORT] without a path, like https://app.example.com`},
		"host":                        {yaml: url + "allowed-hosts: ['http://a']\n", want: `@:2: allowed-hosts: "http://a" is no host; write HOST or HOST:PORT, like bridge.example.com`},
		"terminate for whom":          {yaml: url + "auth: {mode: terminate, clients: {issuer: 'https://login.example'}}\n", want: `@:2: auth.mode: terminate needs public-url or auth.clients.audience: for whom clients' tokens are`},
		"terminate by a page":         {yaml: url + "public-url: https://b.example\nauth: {mode: terminate, grant: code, clients: {issuer: 'https://login.example'}}\n", want: `@:3: auth.grant: code is the login of one person, which mode terminate does not share; use client-credentials, enterprise or exchange`},
		"a login for every page":      {yaml: url + "auth: {mode: agent}\nallowed-origins: ['*']\n", want: `@:2: auth.mode: agent would give your login to every web page that a browser opens, since allowed-origins has *; name the origins that may act as you, or set auth.share to yes`},
		"a login over a socket":       {yaml: url + "auth: {mode: agent}\nlisten: unix:/run/b\nallowed-origins: ['https://a.example', '*']\n", want: `@:2: auth.mode: agent would give your login to every web page that a browser opens, since allowed-origins has *; name the origins that may act as you, or set auth.share to yes`},
		"a secret for anybody":        {yaml: url + "auth: {mode: agent, client-id: a, client-secret: hush}\n", want: `@:2: auth.client-secret: ` + boundSecret},
		"a secret in a file":          {yaml: url + "auth: {mode: agent, grant: client-credentials, client-id: a, client-secret-file: /s}\n", want: `@:2: auth.client-secret-file: ` + boundSecret},
		"a gateway's secret":          {yaml: url + "public-url: https://b.example\nauth: {mode: terminate, grant: client-credentials, client-id: a, client-secret: hush, clients: {issuer: 'https://login.example'}}\n", want: `@:3: auth.client-secret: ` + boundSecret},
		"exchange of nothing":         {yaml: url + "auth: {grant: exchange, mode: agent, client-id: a}\n", want: `@:2: auth.grant: exchange is for mode terminate: there clients bring tokens to exchange`},
		"public address":              {yaml: url + "public-url: mcp.example.com\n", want: `@:2: public-url: is no address of a server; write it like https://mcp.example.com or https://mcp.example.com/mcp`},
		"one address for two":         {yaml: "public-url: https://a.example/mcp\nupstreams:\n- {path: /a, upstream: 'http://a'}\n- {path: /b, upstream: 'http://b'}\n", want: `@:1: public-url: is the address of both /a and /b; write it without a path, or another one for each`},
		"proxy":                       {yaml: url + "trusted-proxies: [10.0.0.0/8, proxy.example]\n", want: `@:2: trusted-proxies: "proxy.example" is no network; write an IP address, a CIDR block like 10.0.0.0/8, or unix`},
		"PROXY of nobody":             {yaml: url + "proxy-protocol: on\n", want: `@:2: proxy-protocol: needs trusted-proxies: from anyone else such a header is not believed`},
		"socket of a command":         {yaml: "command: [a]\nupstream-socket: /s\n", want: `@:2: upstream-socket: cannot be set beside command, which is spoken with over its standard input and output`},
		"socket without URL":          {yaml: "upstreams:\n  - {path: /b, upstream: '', upstream-socket: /s}\n", want: "2 problems in the configuration\n  @:2: upstreams[0].upstream: is missing; give the URL of the server's MCP endpoint, or a command\n  @:2: upstreams[0].upstream-socket: needs upstream to name the path, like http://localhost/mcp"},
		"entry's choice":              {yaml: "upstreams:\n  - {path: /b, upstream: http://b, legacy-relay: no}\n", want: `@:2: upstreams[0].legacy-relay: "no" is unknown; use one of auto, always, never`},
		"path":                        {yaml: url + "path: mcp\n", want: `@:2: path: "mcp" must begin with a slash`},
		"empty path":                  {yaml: url + "path: ''\n", want: `@:2: path: is missing; give the path of the endpoint, like /mcp`},
		"path with query":             {yaml: url + "path: /a?b\n", want: `@:2: path: "/a?b" must be a plain path, without a query, escapes, braces or spaces`},
		"path of health":              {yaml: url + "path: /healthz\n", want: `@:2: path: "/healthz" is where the bridge tells its health; choose another`},
		"path ends in slash":          {yaml: url + "path: /mcp/\n", want: `@:2: path: "/mcp/" must be written "/mcp": without empty parts, . and .., or a slash at the end`},
		"path with dots":              {yaml: url + "path: /mcp/../x\n", want: `@:2: path: "/mcp/../x" must be written "/x": without empty parts, . and .., or a slash at the end`},
		"path of two slashes":         {yaml: url, flag: []Setting{{"path", []string{"//x"}}}, want: `--path: "//x" must be written "/x": without empty parts, . and .., or a slash at the end`},
		"path with escape":            {yaml: url + "path: /%6dcp\n", want: `@:2: path: "/%6dcp" must be a plain path, without a query, escapes, braces or spaces`},
		"a command of no name":        {yaml: "command: ['']\n", want: "@:1: command: begins with nothing; name the program first, as in [my-server, --verbose]"},
		"no upstream":                 {want: `upstream: is missing; give the URL of the server's MCP endpoint, or a command`},
		"both on the command line":    {yaml: url, flag: []Setting{{"command", []string{"a"}}}, want: `what follows "--": cannot be set beside upstream; keep one of the two`},
		"both":                        {yaml: url + "command: [a]\n", want: `@:2: command: cannot be set beside upstream; keep one of the two`},
		"bad URL":                     {yaml: "upstream: 'http://user:hush@a b/'\n", want: `@:1: upstream: is no URL; write it like https://mcp.example.com/mcp`},
		"scheme":                      {yaml: "upstream: hush.example/mcp\n", want: `@:1: upstream: must begin with http:// or https://, like https://mcp.example.com/mcp`},
		"no host":                     {yaml: "upstream: 'http:///hush'\n", want: `@:1: upstream: names no host; write it like https://mcp.example.com/mcp`},
		"password":                    {yaml: "upstream: https://me:hush@a.example/\n", want: `@:1: upstream: carries a user name or password; set an Authorization header under headers instead`},
		"password in an issuer":       {yaml: url + "auth: {issuer: \"https://me:hu/sh@a.example\", mode: agent}\n", want: `@:2: auth.issuer: is no issuer; write its URL, like https://login.example.com`},
		"user of an issuer":           {yaml: url + "auth: {issuer: \"https://me:hush@login.example\", mode: agent}\n", want: `@:2: auth.issuer: ` + noUser},
		"user of the clients' issuer": {yaml: url + "public-url: https://b.example\nauth: {mode: terminate, clients: {issuer: 'https://hush@login.example'}}\n", want: `@:3: auth.clients.issuer: ` + noUser},
		"user of a provider":          {yaml: url + "auth: {mode: agent, idp: {issuer: 'https://me:hush@login.example'}}\n", want: `@:2: auth.idp.issuer: ` + noUser},
		"issuer with #":               {yaml: url + "auth: {mode: agent, issuer: 'https://me:12#hush@login.example'}\n", want: `@:2: auth.issuer: is no issuer; write its URL, like https://login.example.com`},
		"issuer with ?":               {yaml: url + "auth: {mode: agent, issuer: 'https://login.example?key=hush'}\n", want: `@:2: auth.issuer: is no issuer; write its URL, like https://login.example.com`},
		"user of a resource":          {yaml: url + "auth: {mode: agent, resource: 'https://me:hush@a.example/mcp'}\n", want: `@:2: auth.resource: ` + noUser},
		"user of a client id":         {yaml: url + "auth: {mode: agent, client-id: 'https://me:hush@b.example/client'}\n", want: `@:2: auth.client-id: ` + noUser},
		"user of an audience":         {yaml: url + "auth: {mode: terminate, clients: {issuer: 'https://login.example', audience: ['https://a.example', 'https://me:hush@b.example']}}\n", want: `@:2: auth.clients.audience: ` + noUser},
		"user of a callback":          {yaml: url + "auth: {mode: agent, callback: 'http://me:hush@localhost:3334/callback'}\n", want: `@:2: auth.callback: "…@localhost:3334/callback" is no address on this machine; write http://HOST:PORT/PATH with localhost, 127.0.0.1 or [::1] as HOST`},
		"user of an origin":           {yaml: url + "allowed-origins: ['https://me:hush@app.example.com']\n", want: `@:2: allowed-origins: "…@app.example.com" is no origin; write SCHEME://HOST[:PORT] without a path, like https://app.example.com`},
		"user of a host":              {yaml: url + "allowed-hosts: ['me:hush@app.example.com']\n", want: `@:2: allowed-hosts: "…@app.example.com" is no host; write HOST or HOST:PORT, like bridge.example.com`},
		"user of a proxy":             {yaml: url + "trusted-proxies: ['http://me:hush@10.0.0.1']\n", want: `@:2: trusted-proxies: "…@10.0.0.1" is no network; write an IP address, a CIDR block like 10.0.0.0/8, or unix`},
		"user where to listen":        {yaml: url + "listen: 'https://me:hush@a.example/'\n", want: `@:2: listen: "…@a.example/" is no address; write HOST:PORT, like 127.0.0.1:8080, or unix:PATH`},
		"user of a root":              {yaml: url + "roots: ['file://me:hush@/']\n", want: `@:2: roots: "…@/" is no root; write it like file:///home/me/project`},
		"user of a public address":    {yaml: url + "public-url: https://me:hush@b.example\n", want: `@:2: public-url: is no address of a server; write it like https://mcp.example.com or https://mcp.example.com/mcp`},
		"user of a model":             {yaml: url + "sampling: {provider: openai, model: m, url: 'https://me:hush@b.example/v1'}\n", want: `@:2: sampling.url: is no address of an API; write it like http://127.0.0.1:11434/v1`},
		"user of a page":              {yaml: url + "questions: {policy: page, url: 'https://me:hush@b.example/questions'}\n", want: `@:2: questions.url: is no address of a page; write it like https://bridge.example.com/questions`},
		"password with @ and /":       {yaml: "upstream: https://me:hu@sh/hush@a.example/\n", want: `@:1: upstream: carries a user name or password; set an Authorization header under headers instead`},
		"password with #":             {yaml: "upstream: https://me:12#hush@a.example/\n", want: `@:1: upstream: has a fragment (#…), which no server ever sees; remove it`},
		"fragment":                    {yaml: "upstream: https://a.example/#hush\n", want: `@:1: upstream: has a fragment (#…), which no server ever sees; remove it`},
		"header name":                 {yaml: url + "headers: {'a b': hush}\n", want: `@:2: headers: "a b" is no header name`},
		"header of ours":              {yaml: url + "headers: {mcp-session-id: hush}\n", want: `@:2: headers: "mcp-session-id" is set by the bridge itself; remove it`},
		"header value":                {yaml: url + "headers: {authorization: \"hush\\nhush\"}\n", want: `@:2: headers: the value of "Authorization" holds a character that headers cannot carry`},
		"header to command":           {yaml: "command: [a]\nheaders: {a: hush}\n", want: `@:2: headers: cannot be sent to a command; pass it arguments or environment variables`},
		"round beyond flow":           {yaml: url + "timeouts: {flow: 11m, round: 12m}\n", want: `@:2: timeouts.round: 12m is longer than timeouts.flow (11m), which bounds it; lower this or raise that`},
		"pause beyond retention":      {yaml: url + "timeouts: {poll: 5s, poll-pause: 2s, retention: 2s}\n", want: `@:2: timeouts.poll-pause: 2s is not below timeouts.retention (2s): who comes back as told may find the answer gone; lower this or raise that`},
		"pause beyond default":        {yaml: url + "timeouts: {poll: 5s, poll-pause: 6m}\n", want: `@:2: timeouts.poll-pause: 6m is not below timeouts.retention (5m): who comes back as told may find the answer gone; lower this or raise that`},
		"pause beyond question":       {yaml: url + "timeouts: {poll: 5s, poll-pause: 5s, server-request: 4s}\n", want: `@:2: timeouts.poll-pause: 5s is not below timeouts.server-request (4s): who comes back as told may find the question gone; lower this or raise that`},
		"pause beyond session":        {yaml: url + "timeouts: {poll: 5s, poll-pause: 8s, session-idle: 4s}\n", want: `@:2: timeouts.poll-pause: 8s is not below timeouts.session-idle (4s): who comes back as told may find the session gone; lower this or raise that`},
		"upstream beside":             {yaml: url + "upstreams: [{path: /b, upstream: http://b}]\n", want: `@:1: upstream: cannot be set beside upstreams; set it in the entry that it belongs to`},
		"entry without URL":           {yaml: "upstreams:\n  - path: /b\n", want: `@:2: upstreams[0].upstream: is missing; give the URL of the server's MCP endpoint, or a command`},
		"entry's key":                 {yaml: "upstreams:\n  - {path: /b, upstream: http://b, listen: ':1'}\n", want: `@:2: unknown key "upstreams[0].listen"`},
		"entry's limit":               {yaml: "upstreams:\n  - {path: /b, upstream: http://b, limits: {rounds: -1}}\n", want: `@:2: upstreams[0].limits.rounds: -1 is out of range; use 1 to 1000`},
		"entry's timeout":             {yaml: "upstreams:\n  - {path: /b, upstream: http://b, timeouts: {flow: 1h, round: 2h}}\n", want: `@:2: upstreams[0].timeouts.round: 2h is longer than timeouts.flow (1h), which bounds it; lower this or raise that`},
		"path taken":                  {yaml: "upstreams:\n  - {path: /b, upstream: http://b}\n  - {path: /b, upstream: http://c}\n", want: `@:3: upstreams[1].path: "/b" is the path of upstreams[0] already; every upstream needs its own`},
		"path of HTTP+SSE":            {yaml: "upstreams:\n  - {path: /a, upstream: http://b}\n  - {path: /a/sse, upstream: http://c}\n", want: `@:3: upstreams[1].path: "/a/sse" is where clients of upstreams[0] find HTTP+SSE; choose another`},
		"path of messages":            {yaml: "upstreams:\n  - {path: /a/messages, upstream: http://b}\n  - {path: /a, upstream: http://c}\n", want: `@:2: upstreams[0].path: "/a/messages" is where clients of upstreams[1] find HTTP+SSE; choose another`},
		"path below the root":         {yaml: "upstreams:\n  - {path: /, upstream: http://b}\n  - {path: /sse, upstream: http://c}\n", want: `@:3: upstreams[1].path: "/sse" is where clients of upstreams[0] find HTTP+SSE; choose another`},
		"header beside": {yaml: "headers: {'a b': hush}\nupstreams: [{path: /b, upstream: http://b}]\n", want: "2 problems in the configuration\n" +
			"  @:1: headers: cannot be set beside upstreams; set it in the entry that it belongs to\n  @:1: headers: \"a b\" is no header name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, test.yaml)
			_, err := Load(Sources{File: file, Environ: test.env, Flags: test.flag})
			if err == nil {
				t.Fatal("no error")
			}
			if got := strings.ReplaceAll(err.Error(), file, "@"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if strings.Contains(err.Error(), "hush") {
				t.Error("the message tells a secret")
			}
		})
	}
}

func TestAllProblemsAreReportedAtOnceInTheOrderOfTheFile(t *testing.T) {
	file := writeFile(t, "limits:\n  rounds: 0\n  rouns: 1\nlog: {level: loud}\n")
	_, err := Load(Sources{File: file, Environ: []string{"BRIDGE_X=1"}})
	var all *Error
	if !errors.As(err, &all) {
		t.Fatalf("got %v, want an *Error", err)
	}
	var keys []string
	for _, p := range all.Problems {
		keys = append(keys, p.Key+"@"+filepath.Base(p.Where))
	}
	want := "limits.rounds@bridge.yaml @bridge.yaml log.level@bridge.yaml @BRIDGE_X upstream@."
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !strings.HasPrefix(err.Error(), "5 problems in the configuration\n  ") {
		t.Errorf("got %s", err)
	}
}

func TestUnreadableFileIsTheOnlyProblem(t *testing.T) {
	_, err := Load(Sources{File: "/does/not/exist.yaml"})
	if want := "/does/not/exist.yaml: cannot read the configuration: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestLongValuesAreShortened(t *testing.T) {
	_, err := Load(Sources{Flags: []Setting{{"listen", []string{strings.Repeat("é", 500)}}, {"upstream", []string{"http://a"}}}})
	if err == nil || len(err.Error()) > 250 {
		t.Errorf("got %v", err)
	}
}

func TestPathsThatWork(t *testing.T) {
	for _, text := range []string{
		"{path: /, upstream: http://a}", "{path: /sse, upstream: http://a}", "{path: /a/b.c, upstream: http://a}",
		"{upstreams: [{path: /, upstream: http://a}, {path: /a, upstream: http://b}, {path: /a/b, upstream: http://c}, {path: /assets/sse, upstream: http://d}]}",
	} {
		if _, err := Load(Sources{File: writeFile(t, text)}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestAPauseBelowWhatIsKeptIsFine, and any where nobody is told to pause.
func TestAPauseBelowWhatIsKeptIsFine(t *testing.T) {
	for _, timeouts := range []string{"poll: 5s", "poll: 5s, poll-pause: 1h, retention: 2h, session-idle: 2h, server-request: 2h, flow: 2h", "poll-pause: 1h", "poll: 5s, retention: 1s, session-idle: 1s"} {
		if _, err := Load(Sources{File: writeFile(t, "upstream: http://a\ntimeouts: {"+timeouts+"}\n")}); err != nil {
			t.Errorf("%s: %v", timeouts, err)
		}
	}
}

// boundSecret is what there is to say of a secret that any server could have sent to anybody.
const boundSecret = "needs auth.issuer, the authorization server that gave the secret: without that it would go to whichever one the MCP server names; write its URL, like https://login.example.com"

// Secrets and clients' tokens go to whom the operator named.
func TestTheTrustedIssuer(t *testing.T) {
	const url = "upstream: https://a.example/mcp\npublic-url: https://b.example\n"
	for name, test := range map[string]struct{ yaml, want string }{
		"a secret":                 {"auth: {mode: agent, issuer: 'https://as', client-id: a, client-secret: s}\n", "https://as"},
		"an exchange":              {"auth: {mode: terminate, grant: exchange, client-id: a, client-secret: s, clients: {issuer: 'https://login'}}\n", "https://login"},
		"an exchange elsewhere":    {"auth: {mode: terminate, grant: exchange, issuer: 'https://as', client-id: a, client-secret: s, clients: {issuer: 'https://login'}}\n", "https://as"},
		"an account of the bridge": {"auth: {mode: terminate, grant: client-credentials, client-id: a, client-key: k, clients: {issuer: 'https://login'}}\n", ""},
		"a key":                    {"auth: {mode: agent, client-id: a, client-key: k}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := Load(Sources{File: writeFile(t, url+test.yaml)})
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.Auth.TrustedIssuer(); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A login may be shared with pages by name, or with everybody where that is said.
func TestALoginIsSharedWithWhomItSays(t *testing.T) {
	for _, yaml := range []string{"auth: {mode: agent}\nallowed-origins: ['https://a.example']\n", "auth: {mode: agent, share: yes}\nallowed-origins: ['*']\n", "allowed-origins: ['*']\n"} {
		if _, err := Load(Sources{File: writeFile(t, "upstream: https://a.example/mcp\n"+yaml)}); err != nil {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}

// What is a name, and shown to people and sent to others, is refused with a password, be it one by which it cannot be read as a URL, or reads as
// another one. Nothing of it is quoted.
func TestNoNameHasAPasswordWhateverItsCharacters(t *testing.T) {
	for name, yaml := range map[string]string{
		"a resource":         "auth: {mode: agent, resource: '%s'}",
		"a client id":        "auth: {mode: agent, client-id: '%s'}",
		"a provider's id":    "auth: {mode: agent, idp: {client-id: '%s'}}",
		"an audience":        "auth: {mode: terminate, clients: {issuer: 'https://login.example', audience: ['%s']}}",
		"an issuer":          "auth: {mode: agent, issuer: '%s'}",
		"a public address":   "public-url: '%s'",
		"an address of ours": "questions: {policy: page, url: '%s'}",
	} {
		t.Run(name, func(t *testing.T) {
			load := func(text string) error {
				_, err := Load(Sources{File: writeFile(t, "upstream: https://a.example/mcp\n"+strings.ReplaceAll(yaml, "%s", text)+"\n")})
				return err
			}
			for _, start := range []string{"https://me:", "HTTPS://me:", " http://me:", "https://my.name:"} {
				for _, password := range []string{"hush", "hu%sh", "hu/sh", "hu/", "hu#sh", "hu?sh", "hu sh", "hu@sh", "1#hush", "1/hush", "1?hush", "/hush"} {
					text := start + password + "@b.example/x"
					if err := load(text); err == nil {
						t.Errorf("%s is accepted", text)
					} else if strings.Contains(err.Error(), "sh") || strings.Contains(err.Error(), "b.example") && !strings.Contains(err.Error(), "write it") {
						t.Errorf("of %s is quoted: %v", text, err)
					}
				}
			}
			for _, text := range []string{"https://b.example/@me/x", "http://localhost:1/@me/x", "https://b.example/me@a.example"} {
				if err := load(text); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
	for _, text := range []string{"me@b.example", "urn:me@b", "api://me:1@b"} {
		if hasUser(text) {
			t.Errorf("%s is taken for a URL with a user", text)
		}
	}
}
