package consume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/registry"
)

// run is one measurement under way.
type run struct {
	cfg      Config
	engines  *engine.Engines
	db       *pgxpool.Pool // of groups and limits alike
	registry *registry.Client
	schemaID int
	conns    int32 // of db, where the usual are too few
	res      Result
}

// Run measures. It stops and removes what it started, also if ctx ends.
func Run(ctx context.Context, cfg Config) (_ Result, err error) {
	if err := Check(cfg); err != nil {
		return Result{}, err
	}
	began := time.Now()
	r := &run{cfg: cfg, res: Result{Name: "consume", Events: cfg.Events, Cores: runtime.NumCPU()}}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	for _, s := range []struct {
		name  string
		limit time.Duration
		fn    func(context.Context) error
	}{
		{"start Postgres, broker and registry", 3 * time.Minute, r.start},
		{"make tables and the topic", time.Minute, r.prepare},
		{fmt.Sprintf("publish %d events", cfg.Events), r.patience(), r.publish},
		{"a transaction an event, without a broker", r.patience(), r.limitTx},
		{"handlers, once", r.patience(), r.plain},
		{"handlers, once, numbers looked at", r.patience(), r.counted},
		{"COPY", r.patience(), r.limitCopy},
		{"handlers of sets, once", r.patience(), r.batch},
		{"slow handlers of many keys", r.patience(), r.keyed},
	} {
		if err := r.step(ctx, s.name, s.limit, s.fn); err != nil {
			return Result{}, err
		}
	}
	if u := child.UsageOf(os.Getpid()); u.Known {
		r.res.Peak = &u.Peak
	}
	r.res.Postgres, r.res.Seconds = r.engines.Postgres, time.Since(began).Seconds()
	return r.res, nil
}

// patience bounds a step: a hundredth of what is aimed for is a fault.
func (r *run) patience() time.Duration {
	return time.Minute + time.Duration(r.cfg.Events)*3*time.Millisecond
}

func (r *run) step(ctx context.Context, name string, limit time.Duration, fn func(context.Context) error) error {
	if r.cfg.Progress != nil {
		r.cfg.Progress(name)
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := fn(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil:
		return fmt.Errorf("%s: not done within %s: %w", name, limit, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (r *run) start(ctx context.Context) (err error) {
	r.engines, err = engine.Start(ctx, r.cfg.Engines)
	return err
}

func (r *run) prepare(ctx context.Context) (err error) {
	r.db, err = pg.Open(ctx, r.engines.DSN, pg.Config{ApplicationName: "waybill bench", MaxConns: max(connections+2, r.conns)})
	if err != nil {
		return err
	}
	if err := pg.Migrate(ctx, r.db, incident.Migration(), consumer.Migrations()); err != nil {
		return err
	}
	if _, err := r.db.Exec(ctx, `CREATE TABLE effect (id bigint GENERATED ALWAYS AS IDENTITY, account text NOT NULL, n bigint NOT NULL)`); err != nil {
		return err
	}
	if r.registry, err = registry.New(r.engines.RegistryURL, registry.Config{}); err != nil {
		return err
	}
	if err := r.declare(ctx); err != nil {
		return err
	}
	ids, err := r.registry.Register(ctx, sr.CompatNone.String(), contract)
	r.schemaID = ids[contract.Fingerprint]
	return err
}

func (r *run) declare(ctx context.Context) error {
	cl, err := r.engines.Broker.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	there, err := kadm.NewClient(cl).ListTopics(ctx, topicName)
	if err != nil {
		return err
	}
	if there.Has(topicName) && there[topicName].Err == nil {
		return errBusy
	}
	return r.engines.Declare(ctx, topicName)
}

func (r *run) close(ctx context.Context) error {
	if r.registry != nil {
		r.registry.Close()
	}
	if r.db != nil {
		r.db.Close()
	}
	if r.engines == nil {
		return nil
	}
	return r.engines.Close(ctx)
}
