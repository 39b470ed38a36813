package demo

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var (
	linkPattern  = regexp.MustCompile(`https?://\S+/q/\w+`)
	inputPattern = regexp.MustCompile(`<input type="(\w+)"[^>]*? name="([^"]*)" value="([^"]*)"`)
	optionOf     = regexp.MustCompile(`(?s)<select[^>]* name="([^"]*)".*?<option value="([^"]+)"`)
)

// pageIn returns the page that a tool's result sends its reader to, or "".
func pageIn(result *mcp.CallToolResult) string {
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			if link := linkPattern.FindString(text.Text); link != "" {
				return link
			}
		}
	}
	return ""
}

// fillIn does what a person would do on the page, for a demo without one: it takes
// what the form proposes, and the first of what can be chosen.
func fillIn(ctx context.Context, link string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar}
	defer browser.CloseIdleConnections()
	page, err := visit(ctx, browser, http.MethodGet, link, "")
	if err != nil {
		return err
	}
	form := url.Values{}
	for _, input := range inputPattern.FindAllStringSubmatch(page, -1) {
		if name, value := html.UnescapeString(input[2]), html.UnescapeString(input[3]); input[1] != "checkbox" || value == "true" {
			form.Set(name, value)
		}
	}
	for _, choice := range optionOf.FindAllStringSubmatch(page, -1) {
		form.Set(html.UnescapeString(choice[1]), html.UnescapeString(choice[2]))
	}
	form.Set("action", "accept")
	_, err = visit(ctx, browser, http.MethodPost, link, form.Encode())
	return err
}

func visit(ctx context.Context, browser *http.Client, method, link, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, link, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := browser.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the page answered %s: %.300s", resp.Status, text)
	}
	return string(text), err
}
