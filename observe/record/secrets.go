package record

import (
	"slices"
	"strings"
	"unicode"
)

// secrecy says what of a member nobody may see, going by what it is called. No list of such
// names is complete: people and servers call their secrets as they like.
type secrecy uint8

const (
	shown  secrecy = iota
	texts          // its texts; numbers only count something, such as the tokens of a model
	hidden         // its texts and numbers
)

var (
	// secrets stand for themselves in whatever name.
	secrets = strings.Fields("authorization passw passphrase passcode secret apikey cookie credential")
	// endings are names of secrets that end a name, however its words are joined, be they several (keys).
	endings = strings.Fields(`token privatekey accesskey signingkey encryptionkey sshkey accountkey masterkey sharedkey authkey licensekey sessionkey
		storagekey subscriptionkey sessionid cardnumber accountnumber socialsecuritynumber creditcard debitcard verificationcode securitycode
		authcode accesscode recoverycode backupcode onetimecode mfacode tfacode codeverifier securityanswer
		connectionstring connstring connstr basicauth bearerauth sessid seedphrase recoveryphrase`)
	// short are so short that they count only as the last word.
	short = set("pin pwd pass jwt jwts jws jwe dsn otp otps totp assertion assertions bearer ssn cvv cvc csc iban sid")
	// opening are words of which a code opens something. Of 2fa the letters are a word.
	opening = set("mfa tfa fa sms login signin reset pairing unlock device authentication")
	// fillers may follow a word, or several, without making it another thing: what it is, its edition, its form. Of v2 and base64 the
	// letters are words.
	fillers = set("code number value string text plain data v new old raw pem der base")
)

// secrecyOf goes by the words of a name, be they joined as in private_key, privateKey, Private-Key or
// privatekey. A tokenizer is no token.
func secrecyOf(name string) secrecy {
	if name == "progressToken" { // the protocol's own
		return shown
	}
	words := wordsOf(name)
	if strings.HasSuffix(strings.Join(words, ""), "tokens") {
		return texts
	}
	for {
		joined, n := strings.Join(words, ""), len(words)
		switch {
		case n == 0:
			return shown
		case slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(joined, s) }),
			slices.ContainsFunc(endings, func(s string) bool { return strings.HasSuffix(strings.TrimSuffix(joined, "s"), s) }):
			return hidden
		}
		last := strings.TrimSuffix(words[n-1], "s")
		if n == 1 || !fillers[last] {
			break
		}
		if last == "code" && opening[words[n-2]] {
			return hidden
		}
		words = words[:n-1]
	}
	if last := words[len(words)-1]; short[last] || strings.HasSuffix(last, "token") {
		return hidden
	}
	return shown
}

// wordsOf returns the words of a name in lower case: they end at what is no letter, and before a capital that
// follows a small letter or begins a word after capitals, as in JWTValue.
func wordsOf(name string) (words []string) {
	letters := []rune(name)
	from := 0
	end := func(at int) {
		if at > from {
			words = append(words, strings.ToLower(string(letters[from:at])))
		}
		from = at
	}
	for i, c := range letters {
		switch {
		case !unicode.IsLetter(c):
			end(i)
			from = i + 1
		case i > from && unicode.IsUpper(c) && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			end(i)
		}
	}
	end(len(letters))
	return words
}
