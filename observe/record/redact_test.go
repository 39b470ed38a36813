package record

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/rawjson"
)

// messages have a place for a secret wherever people, models and servers write.
var messages = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"card":%[1]s,"deep":[{"name":%[1]s,"n":%[2]s}]},"_meta":{"progressToken":7,"x":%[1]s}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%[1]s,"name":%[1]s}}`,
	`{"jsonrpc":"2.0","id":1,"method":"patients/find","params":{"name":%[1]s,"version":%[1]s}}`,
	`{"jsonrpc":"2.0","method":"notifications/patient","params":{"name":%[1]s}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":[%[1]s],"x":{"params":{"name":%[1]s}},"_meta":{"progressToken":[%[1]s,%[2]s]}}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"a":{"method":"tools/call","params":{"name":%[1]s}}}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"letter","arguments":{"to":%[1]s}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":%[1]s},"argument":{"name":%[1]s,"value":%[1]s}}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":%[1]s},{"type":"image","data":%[1]s},{"type":"resource_link","uri":%[1]s,"name":%[1]s}],"structuredContent":{"type":%[1]s,"n":%[2]s}}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":%[1]s,"inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"form","message":%[1]s,"requestedSchema":{"type":"object","properties":{"a":{"type":"string","enum":[%[1]s],"default":%[1]s}}}}}}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","requestState":%[1]s,"inputResponses":{"a":{"action":"accept","content":{"pin":%[1]s,"n":%[2]s}}}}}`,
	`{"jsonrpc":"2.0","id":"b-1…","result":{"action":"accept","content":{"type":%[1]s,"n":%[2]s}}}`,
	`{"jsonrpc":"2.0","id":"b-1…","result":{"roots":[{"uri":%[1]s,"name":%[1]s}]}}`,
	`{"jsonrpc":"2.0","id":"b-1…","result":{"role":"assistant","model":%[1]s,"content":{"type":"text","text":%[1]s}}}`,
	`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":%[1]s,"data":{"level":%[1]s}}}`,
	`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"message":%[1]s}}`,
	`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":%[1]s,"data":%[1]s}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":[{"type":"tool_use","id":%[1]s,"name":%[1]s,"input":{"id":%[1]s,"code":%[2]s,"method":%[1]s,"name":%[1]s}}]}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"a":{"id":%[1]s,"method":"sampling/createMessage","params":{"messages":[{"content":[
		{"type":"tool_result","toolUseId":%[1]s,"content":[{"type":"text","id":%[1]s,"text":%[1]s}],"structuredContent":{"requestId":%[1]s,"total":%[2]s}}]}]}}}}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"content":[],"code":%[2]s,"id":%[1]s,"ttl":%[1]s,"_meta":{"x/y":{"id":%[1]s,"code":%[2]s,"method":%[1]s,"params":{"name":%[1]s},"progressToken":%[1]s}}}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":%[1]s,"_meta":{"progressToken":%[1]s,"io.modelcontextprotocol/serverInfo":{"name":%[1]s}}}],"_meta":{"progressToken":%[1]s}}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"pay","_meta":{"progressToken":%[2]s}}],"x":{"params":{"requestId":%[1]s,"progressToken":%[2]s,"_meta":{"progressToken":%[1]s}}}}}`,
	`{"jsonrpc":"2.0","id":1,"method":"x","params":[{"requestId":%[1]s,"_meta":{"progressToken":%[1]s}}]}`,
	`{"jsonrpc":"2.0","id":1,"result":{"":{"id":%[2]s,"method":%[1]s,"jsonrpc":%[1]s,"params":{"requestId":%[1]s}},"inputRequest":{"method":%[1]s},"inputRequests":[{"method":%[1]s}],
		"x":{"error":{"code":%[2]s},"result":{"ttl":%[2]s,"inputRequests":{"a":{"method":%[1]s}},"_meta":{"io.modelcontextprotocol/x":{"type":%[1]s}}}}}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"pay","inputSchema":{"type":"object","example":{"type":%[1]s},"x":{"error":{"code":%[2]s}}}}]}}`,
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"experimental":{"a":{"params":{"name":%[1]s,"ttl":%[2]s}}},"extensions":{"b":{"tools":{"name":%[1]s}}}}}}`,
}

func quote(text string) string { return string(rawjson.AppendQuote(nil, text)) }

// TestNoSecretOfAMessageIsRecorded: without payloads nothing of what a message says is
// in its record, which is JSON of the same members.
func TestNoSecretOfAMessageIsRecorded(t *testing.T) {
	redact := NewRedactor(false)
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9 "\\<>é?&=:/]{12,80}`).Draw(t, "secret")
		number := rapid.StringMatching(`[1-9][0-9]{11,18}`).Draw(t, "number")
		message := rapid.SampledFrom(messages).Draw(t, "message")
		if !strings.Contains(message, "%[2]s") {
			message += "%.0[2]s"
		}
		text := fmt.Sprintf(message, quote(secret), number)
		got := string(redact.Message([]byte(text)))
		if err := rawjson.Validate([]byte(got)); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		inner := strings.Trim(quote(secret), `"`)
		if strings.Contains(got, secret) || strings.Contains(got, inner) || strings.Contains(got, number) {
			t.Fatalf("a secret is in %s", got)
		}
		for _, word := range []string{`"jsonrpc":"2.0"`} {
			if !strings.Contains(got, word) {
				t.Fatalf("%s lost %s", got, word)
			}
		}
	})
}

func TestWhatStays(t *testing.T) {
	for name, tc := range map[string]struct {
		payloads bool
		in, want string
	}{
		"a call": {false,
			`{"method":"tools/call","params":{"name":"pay","arguments":{"type":"text","amount":12.50,"now":true,"none":null},"_meta":{"progressToken":"p"}}}`,
			`{"method":"tools/call","params":{"name":"pay","arguments":{"type":"string(4)","amount":"number()","now":"boolean()","none":null},"_meta":{"progressToken":"p"}}}`},
		"an answer of a person": {false, `{"result":{"action":"accept","content":{"action":"accept"}}}`, `{"result":{"action":"accept","content":{"action":"string(6)"}}}`},
		"a word of the protocol that is a text": {false, `{"result":{"resultType":"complete","content":[{"type":"text","text":"cancelled","id":7}]}}`,
			`{"result":{"resultType":"complete","content":[{"type":"text","text":"string(9)","id":"number()"}]}}`},
		"an input request": {false, `{"result":{"inputRequests":{"a":{"method":"sampling/createMessage","params":{"maxTokens":9}}}}}`,
			`{"result":{"inputRequests":{"a":{"method":"sampling/createMessage","params":{"maxTokens":9}}}}}`},
		"who talks": {false, `{"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"cat","version":"1"},"com.example/x":{"name":"ada","type":"text"}}}}`,
			`{"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"cat","version":"1"},"com.example/x":{"name":"string(3)","type":"string(4)"}}}}`},
		"who serves": {false, `{"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"cat","version":"1"}}}}`, `{"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"cat","version":"1"}}}}`},
		"what a task came to": {false, `{"method":"notifications/tasks","params":{"status":"completed","result":{"resultType":"complete","ttlMs":5}}}`,
			`{"method":"notifications/tasks","params":{"status":"completed","result":{"resultType":"complete","ttlMs":5}}}`},
		"what a question's progress is told by": {false, `{"result":{"inputRequests":{"a":{"method":"elicitation/create","params":{"_meta":{"progressToken":"p"}}}}}}`,
			`{"result":{"inputRequests":{"a":{"method":"elicitation/create","params":{"_meta":{"progressToken":"p"}}}}}}`},
		"a tool's schema": {false, `{"result":{"tools":[{"name":"pay","description":"Pays","inputSchema":{"type":"object","required":["card"]}}],"ttlMs":0}}`,
			`{"result":{"tools":[{"name":"pay","description":"string(4)","inputSchema":{"type":"object","required":["string(4)"]}}],"ttlMs":0}}`},
		"payloads": {true, `{"params":{"arguments":{"card":"4111","apiKey":"k","url":"https://a.example/b?code=1"}}}`,
			`{"params":{"arguments":{"card":"4111","apiKey":"string(1)","url":"https://a.example/b?…"}}}`},
		"credentials of URLs": {true, `{"result":{"a":"https://u:pw@a.example/b#access_token=t","b":"see <ftp://u@h/\u00e9?c=1>, and http://h/x"}}`,
			`{"result":{"a":"https://…@a.example/b#…","b":"see <ftp://…@h/é?…>, and http://h/x"}}`},
	} {
		if got := string(NewRedactor(tc.payloads).Message([]byte(tc.in))); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tc.want)
		}
	}
}

// TestWhatIsCalledLikeASecretIsNotRecorded with payloads, however the words of its name are joined; what only sounds so is.
func TestWhatIsCalledLikeASecretIsNotRecorded(t *testing.T) {
	r := NewRedactor(true)
	for name := range strings.FieldsSeq(`private_key privateKey PrivateKey private-key PRIVATE_KEY privatekey private_keys sshKey access_key
		pin PIN user_pin userPin pinCode pin_code jwt JWT idJwt JWTValue jwt_value tokens accessTokens refresh_tokens token access_token idToken
		otp otpCode totp passcode passphrase password passwd dbPass pwd credential credentials cookie cookies session_id sessionId SessionID sessionid
		assertion client_assertion ssn SSN cvv cvv2 cvc card_number cardNumber cardnumber creditCard account_number api_key apiKey APIKey X-Api-Key
		client_secret Authorization recovery_codes security_code code_verifier token_value bearer`) {
		if got := string(r.Message([]byte(`{"a":{"` + name + `":"it"}}`))); !strings.Contains(got, `"string(2)"`) {
			t.Errorf("a text: %s", got)
		}
		for what, value := range map[string]string{"in a list": `["it"]`, "in an object": `{"of":{"is":"it"}}`} {
			if got := string(r.Message([]byte(`{"` + name + `":` + value + `}`))); strings.Contains(got, `"it"`) {
				t.Errorf("%s: %s", what, got)
			}
		}
	}
	for name := range strings.FieldsSeq("pin otp cvv ssn card_number passcode") {
		if got := string(r.Message([]byte(`{"` + name + `":1234}`))); strings.Contains(got, "1234") {
			t.Errorf("a number: %s", got)
		}
	}
	long := strings.Repeat("x", 2*maxName) + "_password"
	if got := string(r.Message([]byte(`{"` + long + `":"it"}`))); strings.Contains(got, `"it"`) {
		t.Errorf("under a long name: %s", got)
	}
	for name := range strings.FieldsSeq(`tokenizer tokenized token_type token_count tokenType progressToken pinned pinning spin opinion shopping pins
		max_tokens_mode session sessions session_name key keys public_key publicKey primary_key keyboard monkey card cardinality passenger bypass compass
		passed code zip_code number description assert asserts assertion_type author consider inside side basin`) {
		text := `{"a":{"` + name + `":"it","b":1}}`
		if got := string(r.Message([]byte(text))); got != text {
			t.Errorf("it was masked: %s", got)
		}
	}
	for _, text := range []string{
		`{"maxTokens":9,"max_tokens":9,"total_tokens":9,"usage":{"inputTokens":9},"tokens":{"in":9}}`,
		`{"inputSchema":{"properties":{"password":{"type":"string","title":"What is it?"}},"required":["password"]}}`,
		`{"result":{"inputRequests":{"credentials":{"method":"elicitation/create"}}},"params":{"inputResponses":{"pin":{"action":"accept","content":{"x":"it"}}}}}`,
	} {
		if got := string(r.Message([]byte(text))); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// TestWhatASchemaSaysOfASecretsValue: the form of a field that is called like a secret may be seen, what it may or shall be not.
func TestWhatASchemaSaysOfASecretsValueIsNotRecorded(t *testing.T) {
	r := NewRedactor(true)
	for what, text := range map[string]string{
		"a default":            `{"requestedSchema":{"type":"object","properties":{"password":{"type":"string","default":"it"}}}}`,
		"a number":             `{"requestedSchema":{"properties":{"pin":{"type":"integer","default":1234}}}}`,
		"options":              `{"requestedSchema":{"properties":{"api_key":{"enum":["it","x"],"enumNames":["it","x"]}}}}`,
		"examples":             `{"inputSchema":{"properties":{"api_key":{"examples":["it"]}}}}`,
		"a constant":           `{"inputSchema":{"properties":{"token":{"const":{"is":"it"}}}}}`,
		"one of several":       `{"requestedSchema":{"properties":{"token":{"oneOf":[{"const":"it","title":"Yours"}]}}}}`,
		"of its elements":      `{"inputSchema":{"properties":{"tokens":{"items":{"enum":["it"]}}}}}`,
		"in it":                `{"inputSchema":{"properties":{"credentials":{"properties":{"default":{"default":"it"},"a":{"enum":["it"]}}}}}}`,
		"a definition":         `{"inputSchema":{"$defs":{"secret":{"default":"it"}}}}`,
		"by a pattern":         `{"inputSchema":{"patternProperties":{"_token$":{"default":"it"}}}}`,
		"an option's title":    `{"requestedSchema":{"properties":{"token":{"oneOf":[{"const":"x","title":"it","description":"it"}]}}}}`,
		"of several":           `{"requestedSchema":{"properties":{"tokens":{"items":{"anyOf":[{"const":"x","title":"it"}]}}}}}`,
		"the only option":      `{"requestedSchema":{"properties":{"token":{"title":"it","const":"x"}}}}`,
		"an example":           `{"inputSchema":{"properties":{"api_key":{"example":"it"}}}}`,
		"what no schema has":   `{"inputSchema":{"properties":{"api_key":{"value":"it","x-values":[{"type":"it"}]}}}}`,
		"a wrong type":         `{"inputSchema":{"properties":{"password":{"not":"it","oneOf":["it"],"properties":["it"],"type":{"is":"it"}}}}}`,
		"values, no schema":    `{"params":{"arguments":{"properties":{"password":{"is":"it"}}}}}`,
		"a result's":           `{"result":{"structuredContent":{"definitions":{"password":{"is":"it"}}}}}`,
		"an answer's":          `{"result":{"content":{"properties":{"password":{"is":"it"}}}}}`,
		"in a field's default": `{"requestedSchema":{"properties":{"a":{"default":{"properties":{"password":{"is":"it"}}}}}}}`,
	} {
		if got := string(r.Message([]byte(text))); strings.Contains(got, `"it"`) || strings.Contains(got, "1234") {
			t.Errorf("%s: %s", what, got)
		}
	}
	for _, text := range []string{
		`{"inputSchema":{"properties":{"password":{"type":"string","title":"What is it?","minLength":8,"pattern":"^it"},"default":{"type":"string","default":"it"}},"required":["password"]}}`,
		`{"inputSchema":{"properties":{"arguments":{"type":"object","properties":{"password":{"type":"string"}}}}}}`,
	} {
		if got := string(r.Message([]byte(text))); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// TestOnlySchemasAreTakenForSchemas: what is called like the parts of one, but stands where the protocol has none, is somebody's values.
func TestOnlySchemasAreTakenForSchemas(t *testing.T) {
	r := NewRedactor(true)
	likes := []string{`{"inputSchema":{"properties":{"password":{"title":"hunter2"}}}}`}
	for parts := range strings.FieldsSeq("properties patternProperties $defs definitions dependentSchemas inputRequests inputResponses") {
		likes = append(likes, `{"`+parts+`":{"password":{"value":"hunter2"}}}`)
	}
	for what, text := range map[string]string{
		"of the log":          `{"method":"notifications/message","params":{"level":"info","data":%s}}`,
		"an error's data":     `{"id":1,"error":{"code":1,"message":"m","data":%s}}`,
		"_meta":               `{"id":1,"result":{"_meta":%s}}`,
		"_meta of a call":     `{"id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":%s}}}`,
		"_meta of a tool":     `{"id":1,"result":{"tools":[{"name":"a","_meta":{"x":%s}}]}}`,
		"metadata":            `{"id":1,"method":"sampling/createMessage","params":{"metadata":%s}}`,
		"params in a result":  `{"id":1,"result":{"x":{"params":%s}}}`,
		"a block's data":      `{"id":1,"result":{"content":[{"type":"x","data":%s}]}}`,
		"a structured result": `{"id":1,"result":{"structuredContent":%s}}`,
		"arguments":           `{"id":1,"method":"tools/call","params":{"name":"a","arguments":%s}}`,
		"a model's":           `{"id":1,"result":{"content":[{"type":"tool_use","input":%s}]}}`,
		"an answer":           `{"id":1,"result":{"action":"accept","content":%s}}`,
		"an extension's":      `{"id":1,"method":"initialize","params":{"capabilities":{"extensions":{"x":%s}}}}`,
		"a tool's default":    `{"id":1,"result":{"tools":[{"name":"a","inputSchema":{"default":%s}}]}}`,
		"what no schema has":  `{"id":1,"result":{"tools":[{"name":"a","inputSchema":{"x":%s}}]}}`,
	} {
		for _, like := range likes {
			if got := string(r.Message([]byte(fmt.Sprintf(text, like)))); strings.Contains(got, "hunter2") {
				t.Errorf("%s: %s", what, got)
			}
		}
	}
	for what, text := range map[string]string{
		"in a result":            `{"id":1,"result":{"x":%s}}`,
		"in another method":      `{"id":1,"method":"x/y","params":{"x":%s}}`,
		"a block":                `{"id":1,"result":{"content":[%s]}}`,
		"a tool":                 `{"id":1,"result":{"tools":[%s]}}`,
		"responses in a list":    `{"id":1,"method":"tools/call","params":{"inputResponses":[%s]}}`,
		"called like a response": `{"id":1,"method":"tools/call","params":{"inputResponses":{"properties":%s}}}`,
	} {
		for _, like := range likes[1:] {
			if got := string(r.Message([]byte(fmt.Sprintf(text, like)))); strings.Contains(got, "hunter2") {
				t.Errorf("%s: %s", what, got)
			}
		}
	}
	for _, text := range []string{
		`{"result":{"properties":{"password":{"value":"hunter2"}}}}`,
		`{"method":"x/y","params":{"properties":{"password":{"value":"hunter2"}}}}`,
	} {
		if got := string(r.Message([]byte(text))); strings.Contains(got, "hunter2") {
			t.Errorf("%s", got)
		}
	}
	const form = `{"type":"object","properties":{"password":{"type":"string","title":"Yours","description":"What is it?","minLength":8},` +
		`"properties":{"type":"object","properties":{"pin":{"type":"integer","maximum":9999}}}},"required":["password"]}`
	for what, text := range map[string]string{
		"a list of tools":      `{"id":1,"result":{"tools":[{"name":"a","inputSchema":%[1]s,"outputSchema":%[1]s}]}}`,
		"a model's tools":      `{"id":1,"method":"sampling/createMessage","params":{"tools":[{"name":"a","inputSchema":%s}]}}`,
		"a question":           `{"id":1,"method":"elicitation/create","params":{"requestedSchema":%s}}`,
		"a question in a call": `{"id":1,"result":{"inputRequests":{"password":{"method":"elicitation/create","params":{"requestedSchema":%s}}}}}`,
		"a question of a task": `{"method":"notifications/tasks","params":{"inputRequests":{"a":{"method":"elicitation/create","params":{"requestedSchema":%s}}}}}`,
	} {
		text = fmt.Sprintf(text, form)
		if got := string(r.Message([]byte(text))); got != text {
			t.Errorf("%s: %s became %s", what, text, got)
		}
	}
}

// TestASecretToBeCompletedIsNotRecorded: the argument of completion/complete says under name what value is.
func TestASecretToBeCompletedIsNotRecorded(t *testing.T) {
	r := NewRedactor(true)
	const message = `{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":%s}}`
	for _, argument := range []string{`{"name":"password","value":"hunter2"}`, `{"value":"hunter2","name":"api_key"}`, `{"value":{"is":["hunter2"]},"name":"\u0070in"}`} {
		if got := string(r.Message([]byte(fmt.Sprintf(message, argument)))); strings.Contains(got, "hunter2") {
			t.Errorf("%s", got)
		}
	}
	text := fmt.Sprintf(message, `{"name":"city","value":"Par"}`)
	if got := string(r.Message([]byte(text))); got != text {
		t.Errorf("%s became %s", text, got)
	}
}

// TestSecretsOfLongerNamesAreNotRecorded: what is said of a secret's form, edition or use does not make it another thing, and some are known by two words.
func TestSecretsOfLongerNamesAreNotRecorded(t *testing.T) {
	r := NewRedactor(true)
	for what, names := range map[string]string{
		"an edition":        "tokenV2 token_v2 token2 accessTokenV1 jwtV2 pin_new tokenOld otp1",
		"a form":            "private_key_pem privateKeyPem PRIVATE_KEY_PEM privateKeyPEM ssh_key_pem private_key_der private_key_base64 tokenRaw access_key_data session_id_value token_values",
		"a login":           "bearerAuth bearer_auth basicAuth basic_auth bearerToken bearer_tokens",
		"a connection":      "connectionString connection_string connectionStrings ConnectionString dbConnectionString db_conn_string connStr connstr dsn dbDsn sentry_dsn",
		"a code":            "mfa_code mfaCode MFACode mfacode mfa_codes tfa_code 2fa_code 2faCode sms_code smsCode login_code signinCode reset_code pairingCode unlock_code device_code authentication_code pin_codes otp_codes totp_codes",
		"a session":         "session_cookie sessionCookie PHPSESSID phpsessid JSESSIONID connect.sid sess_id sessionIds",
		"a token in a form": "jwe id_jwe seed_phrase recoveryPhrase",
	} {
		for name := range strings.FieldsSeq(names) {
			if got := string(r.Message([]byte(`{"a":{"` + name + `":"it"}}`))); !strings.Contains(got, `"string(2)"`) {
				t.Errorf("%s: %s", what, got)
			}
		}
	}
	for name := range strings.FieldsSeq("mfa_code 2fa_code sms_code pin_codes") {
		if got := string(r.Message([]byte(`{"` + name + `":[1234]}`))); strings.Contains(got, "1234") {
			t.Errorf("a number: %s", got)
		}
	}
	for name := range strings.FieldsSeq(`public_key_pem publicKeyPem certificate_pem private_key_id access_key_id connection connection_id connections connector
		string_connection bearer_format bearerFormat auth auth_type mfa mfa_enabled mfaRequired 2fa fa fa_IR sms sms_sender login reset reset_at device device_id pairing
		authentication country_code countryCode zip_codes error_codes status_code language_code promo_code sofa_code alfaCode user_agent v version api_version token_version
		base new old raw database base_url pem phrase seed token_base_url session_data sessions_data key_data primary_key_value newPins dsns_total`) {
		text := `{"a":{"` + name + `":"it","b":1}}`
		if got := string(r.Message([]byte(text))); got != text {
			t.Errorf("it was masked: %s", got)
		}
	}
}

// TestStatesAreToldApart, and nothing else is told of them, with payloads too.
func TestStatesAreToldApart(t *testing.T) {
	r := NewRedactor(true)
	state := func(text string) string {
		var msg struct{ Params struct{ RequestState string } }
		if err := json.Unmarshal(r.Message([]byte(`{"params":{"requestState":"`+text+`"}}`)), &msg); err != nil {
			t.Fatal(err)
		}
		return msg.Params.RequestState
	}
	one, two := state("secret-1"), state("secret-2")
	if one == two || one != state("secret-1") || strings.Contains(one, "secret") || !strings.HasPrefix(one, "state(8)-") {
		t.Errorf("%s, %s", one, two)
	}
}

// A server may send as its state what is none.
func TestAStateOfAnotherTypeIsToldApart(t *testing.T) {
	for _, payloads := range []bool{false, true} {
		r := NewRedactor(payloads)
		for _, state := range []string{`{"secret-1":"secret-2"}`, `["secret-1",{"x":12345678}]`, `12345678`, `[["secret-1"]]`, `true`} {
			got := string(r.Message([]byte(`{"result":{"resultType":"input_required","requestState":` + state + `}}`)))
			if strings.Contains(got, "secret-") || strings.Contains(got, "12345678") || !strings.Contains(got, fmt.Sprintf(`"requestState":"state(%d)-`, len(state))) {
				t.Errorf("%s became %s", state, got)
			}
		}
		for _, none := range []string{`{"result":{"requestState":null}}`, `{"inputSchema":{"properties":{"requestState":{"type":"string"}}}}`} {
			if got := string(r.Message([]byte(none))); got != none {
				t.Errorf("%s became %s", none, got)
			}
		}
	}
}

func FuzzRedactedMessagesAreMessages(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(fmt.Sprintf(m+"%.0[2]s", `"x"`, "1")))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if rawjson.Validate(text) != nil {
			return
		}
		for _, payloads := range []bool{false, true} {
			if got := NewRedactor(payloads).Message(text); rawjson.Balanced(got) != nil {
				t.Errorf("%s became %s", text, got)
			}
		}
	})
}
