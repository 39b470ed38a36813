package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Write prints the report for people.
func (r *Report) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d CPUs. %s.\n", r.Go, r.CPUs, r.Noise)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(r.Rows) > 0 {
		fmt.Fprintf(w, "\nClosed loop. Ratios are bridge ÷ ReverseProxy per round: min median max.\n\n")
		writeRows(t, r.Rows)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Beside) > 0 {
		fmt.Fprintf(w, "\nOther bridges. Ratios are to the bridge per round: min median max.\n\n")
		fmt.Fprintln(t, "traffic\tsystem\tCPU µs\tCPU ratio\tcalls ratio")
		for _, b := range r.Beside {
			fmt.Fprintf(t, "%s\t%s\t%.1f\t%s\t%s\n", b.Kind, b.System, b.CPU.Median, b.Ratio, b.Calls)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Figures) > 0 {
		fmt.Fprintln(w)
		writeFigures(t, r.Figures)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, e := range r.Errors {
		fmt.Fprintf(w, "\nFAILED: %s\n", e)
	}
	return nil
}

func writeRows(t io.Writer, rows []Row) {
	fmt.Fprintln(t, "traffic\tdirect/s\tproxy/s\tbridge/s\tcalls ratio\tmust\taim\t\tdirect µs\tproxy µs\tbridge µs\tCPU ratio\tmust\taim\t\terrors d/p/b")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.0f\t%s\t%.2f\t%.2f\t%s\t", r.Kind, r.PerSecond[Direct].Median, r.PerSecond[Proxy].Median, r.PerSecond[Bridge].Median,
			r.Calls, r.CallsGoal.Must, r.CallsGoal.Aim, r.CallsStand)
		fmt.Fprintf(t, "%.1f\t%.1f\t%.1f\t%s\t%.2f\t%.2f\t%s\t%d/%d/%d\n", r.CPU[Direct].Median, r.CPU[Proxy].Median, r.CPU[Bridge].Median,
			r.CPURatio, r.CPUGoal.Must, r.CPUGoal.Aim, r.CPUStand, r.Errors[Direct], r.Errors[Proxy], r.Errors[Bridge])
	}
}

func writeFigures(t io.Writer, figures []Figure) {
	fmt.Fprintln(t, "figure\tunit\tdirect\tproxy\tbridge\tvalue\tmust\taim\t\tnote")
	for _, f := range figures {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, f.Unit, number(f.Values[Direct]), number(f.Values[Proxy]), number(f.Values[Bridge]),
			number(f.Value), number(f.Goal.Must), number(f.Goal.Aim), f.Stand, f.Note)
	}
}

// number prints three or more significant digits; zero is "not measured".
func number(v float64) string {
	switch a := max(v, -v); {
	case a == 0:
		return "-"
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
