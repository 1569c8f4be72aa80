package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/broker"
)

// playCommand has this program play one of the parts that are measured, each
// in a process of its own: what it costs is then its own.
const playCommand = "play"

// playing is the first arguments of a part, which may be followed by more.
func playing(args []string) bool {
	return len(args) >= 2 && (args[0] == playCommand || args[0] == forwardCommand)
}

func play(ctx context.Context, args []string, out io.Writer) error {
	if args[0] == forwardCommand {
		return forward(ctx, args[1])
	}
	switch part, rest := args[1], args[2:]; {
	case len(rest) != 1:
		return fmt.Errorf("part %s: want one argument", part)
	case part == consumeWaybillPart:
		return consumeWaybill(ctx, rest[0])
	case part == consumeWatermillPart:
		return consumeWatermill(ctx, rest[0])
	case part == mercurePart:
		return serveMercure(ctx, rest[0])
	case part == centrifugePart:
		return serveCentrifuge(ctx, rest[0])
	case part == queueWaybillPart:
		return playQueue(ctx, rest[0], out, newWaybillQueue)
	case part == queueRiverPart:
		return playQueue(ctx, rest[0], out, newRiverQueue)
	case part == queueRiverManyPart:
		return playQueue(ctx, rest[0], out, newRiverManyQueue)
	default:
		return fmt.Errorf("no part is called %s", part)
	}
}

// opened is a pool of the measurement's database, with at most so many
// connections.
func opened(ctx context.Context, conns int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(os.Getenv("WAYBILL_DATABASE_URL")) //nolint:forbidigo // as our parent says
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(conns)
	cfg.ConnConfig.RuntimeParams["application_name"] = partName
	return pgxpool.NewWithConfig(ctx, cfg)
}

// partName is what connections of a part are called in pg_stat_activity.
const partName = "bench part"

func brokers() []string {
	return strings.Split(os.Getenv("WAYBILL_KAFKA_BROKERS"), ",") //nolint:forbidigo // as our parent says
}

func ourBroker() broker.Config { return broker.Config{Brokers: brokers()} }

// faults logs those alone.
func faults() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
