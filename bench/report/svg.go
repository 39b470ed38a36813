package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Series is one line of a plot; the i-th y belongs to the i-th x.
type Series struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

// Plot is a line chart with a logarithmic x axis and a y axis from zero.
type Plot struct {
	Title  string   `json:"title"`
	XLabel string   `json:"xLabel"`
	YLabel string   `json:"yLabel"`
	Series []Series `json:"series"`
}

// The picture's size and the margins around its plotting area, in pixels.
const (
	width, height            = 720, 360
	left, right, top, bottom = 64, 160, 40, 48
)

// The colours are told apart by people who see red and green alike, and carry
// on a light and on a dark page.
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7"}

// SVG draws the plot.
func (p *Plot) SVG(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img" aria-label="%s">`+"\n", width, height, html.EscapeString(p.Title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15" fill="#222222">%s</text>`+"\n", left, html.EscapeString(p.Title))
	s := p.scale()
	s.axes(&b, p)
	for i, line := range p.Series {
		s.line(&b, line, colours[i%len(colours)], i)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// scale maps values to pixels.
type scale struct {
	xMin, xMax float64 // decimal logarithms
	yMax, step float64
}

func (p *Plot) scale() scale {
	s := scale{xMin: math.Inf(1), xMax: math.Inf(-1)}
	for _, line := range p.Series {
		for i := range line.X {
			s.xMin, s.xMax = min(s.xMin, math.Log10(line.X[i])), max(s.xMax, math.Log10(line.X[i]))
			s.yMax = max(s.yMax, line.Y[i])
		}
	}
	if !(s.xMax > s.xMin) { // one value or none
		s.xMin, s.xMax = 0, 1
	}
	if s.yMax <= 0 {
		s.yMax = 1
	}
	s.step = niceStep(s.yMax / 4)
	s.yMax = math.Ceil(s.yMax*1.05/s.step) * s.step
	return s
}

// niceStep is the next of …, 1, 2, 5, 10, … at or above v, which is positive.
func niceStep(v float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*base {
			return m * base
		}
	}
	return 10 * base
}

func (s scale) x(v float64) float64 {
	return left + (math.Log10(v)-s.xMin)/(s.xMax-s.xMin)*(width-left-right)
}

func (s scale) y(v float64) float64 { return height - bottom - v/s.yMax*(height-top-bottom) }

func (s scale) axes(b *strings.Builder, p *Plot) {
	for v := 0.0; v <= s.yMax+s.step/2; v += s.step {
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#dddddd"/>`, left, s.y(v), width-right, s.y(v))
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end" fill="#444444">%g</text>`+"\n", left-8, s.y(v)+4, math.Round(v*100)/100)
	}
	for e := math.Ceil(s.xMin); e <= s.xMax; e++ {
		x := s.x(math.Pow(10, e))
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#888888"/>`, x, height-bottom, x, height-bottom+5)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="#444444">%.0f</text>`+"\n", x, height-bottom+18, math.Pow(10, e))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="#222222">%s</text>`+"\n", (left+width-right)/2, height-10, html.EscapeString(p.XLabel))
	fmt.Fprintf(b, `<text x="16" y="%d" text-anchor="middle" fill="#222222" transform="rotate(-90 16 %d)">%s</text>`+"\n", (top+height-bottom)/2, (top+height-bottom)/2, html.EscapeString(p.YLabel))
}

func (s scale) line(b *strings.Builder, line Series, colour string, n int) {
	var points []string
	for i := range line.X {
		x, y := s.x(line.X[i]), s.y(line.Y[i])
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%g: %.1f</title></circle>`+"\n", x, y, colour, line.X[i], line.Y[i])
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), colour)
	y := top + 16 + 20*n
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="14" height="4" fill="%s"/><text x="%d" y="%d" fill="#222222">%s</text>`+"\n", width-right+16, y-4, colour, width-right+36, y+2, html.EscapeString(line.Name))
}
