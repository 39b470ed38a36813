package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/observe/report"
)

func newReport(env surroundings) *cobra.Command {
	return &cobra.Command{
		Use:   "report FILE",
		Short: "Say which clients came in the last 30 days, and who still needs the bridge",
		Long: `report reads the file that a bridge with admin.report keeps, and says of each client
that came in the last 30 days what it needs the bridge for, or that it could go to the
server directly.`,
		Example: "  bridge serve --upstream https://mcp.example.com/mcp --admin.report clients.json\n  bridge report clients.json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			was, err := reading(func() (report.Report, error) { return report.Read(args[0]) })
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("there is no %s: a bridge with admin.report writes its file a minute after its start, and when it ends; is that the file?", args[0])
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(env.out, "%s\n\n", was.Summary())
			for i := range was.Clients {
				c := &was.Clients[i]
				fmt.Fprintf(env.out, "%s %s, %s: %s, last on %s\n  %s\n", clip.Printable(c.Name), clip.Printable(c.Version), clip.Printable(c.Revision), c.Visits(), c.Last.Format(time.DateOnly), c.Verdict())
			}
			return nil
		},
	}
}

// saving is how often the report is written.
const saving = time.Minute

// keepReport has the report written until stop, and once more then.
func (a *administration) keepReport() {
	defer close(a.saved)
	tick := time.NewTicker(saving)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-a.stopSaving:
			a.save()
			return
		}
		a.save()
	}
}

func (a *administration) save() {
	if err := a.book.Save(); err != nil {
		a.log.Error().Err(err).Msg("the report of clients cannot be written")
	}
}
