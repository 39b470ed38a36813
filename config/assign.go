package config

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// assign sets a field from text. Its errors say what would be right and do not
// repeat the value.
func assign(field reflect.Value, values []string) error {
	switch target := field.Addr().Interface().(type) {
	case *[]string:
		*target = values
		return nil
	case *map[string]string:
		headers, err := parseHeaders(values)
		if err == nil {
			*target = headers
		}
		return err
	default:
		if len(values) != 1 {
			return errors.New("takes one value")
		}
		return assignScalar(target, values[0])
	}
}

func assignScalar(target any, text string) (err error) {
	switch target := target.(type) {
	case *string:
		*target = text
	case *int:
		err = keep(target, strconv.Atoi, text)
		if err != nil {
			err = errors.New("is no whole number")
		}
	case *time.Duration:
		err = keep(target, parseDuration, text)
	case *Size:
		err = keep(target, ParseSize, text)
	case *SizeOrOff:
		err = keep(target, parseSizeOrOff, text)
	default:
		err = fmt.Errorf("has a type that cannot be set: %T", target)
	}
	return err
}

// keep sets the target only when the text was right, so that a broken value
// leaves the default and is reported once.
func keep[T any](target *T, parse func(string) (T, error), text string) error {
	value, err := parse(text)
	if err == nil {
		*target = value
	}
	return err
}

// parseHeaders reads lines of the form NAME: VALUE.
func parseHeaders(lines []string) (map[string]string, error) {
	headers, spelled := make(map[string]string, len(lines)), make(map[string]string, len(lines))
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, errors.New(`must be written as NAME: VALUE`)
		}
		name = strings.TrimSpace(name)
		is := http.CanonicalHeaderKey(name)
		if other, there := spelled[is]; there {
			return nil, fmt.Errorf("%s and %s are one header, which can have one value only", shown(other), shown(name))
		}
		headers[name], spelled[is] = strings.TrimSpace(value), name
	}
	return headers, nil
}
