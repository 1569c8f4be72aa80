package evolution

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/event"
	v2 "github.com/waybillhq/waybill/internal/demo/evolution/v2"
	"github.com/waybillhq/waybill/internal/schemas"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/compat"
)

// change is a change of the contract that breaks somebody.
type change struct {
	what     string
	from, to string // in the text of version 2's file
	field    string // that the refusal must name
}

var changes = []change{
	{"a required field is removed", `,
    {"name": "to", "type": "string", "doc": "The town it goes to."}`, "", "to"},
	{"a field changes its type", `{"name": "weight_g", "type": "int"`, `{"name": "weight_g", "type": "string"`, "weight_g"},
}

// contractFile is version 2 as its file has it.
//
//go:embed v2/parcel_sent.avsc
var contractFile string

// refusals tries each change in the three places that refuse it.
func (d *demo) refusals(ctx context.Context) error {
	for i, c := range changes {
		d.say(fmt.Sprint(4+i), c.what+": refused by the check, by the registry, and where a program starts")
		text := strings.Replace(contractFile, c.from, c.to, 1)
		if text == contractFile {
			return fmt.Errorf("%s: the contract has no such place", c.what)
		}
		tree, err := treeOf(text)
		if err != nil {
			return err
		}
		for _, try := range []struct {
			where string
			do    func(context.Context, schemas.Contract) error
		}{{"check", d.check}, {"registry", d.tryRegister}, {"start", d.tryStart}} {
			err := try.do(ctx, tree)
			if err == nil {
				return fmt.Errorf("%s: not refused by the %s", c.what, try.where)
			}
			if !strings.Contains(err.Error(), fmt.Sprintf("%q", c.field)) {
				return fmt.Errorf("%s: the %s does not name field %q: %w", c.what, try.where, c.field, err)
			}
			d.line("   %-9s %s", try.where, short(err))
		}
	}
	return nil
}

func treeOf(text string) (schemas.Contract, error) {
	dir, err := os.MkdirTemp("", "waybill-evolution-")
	if err != nil {
		return schemas.Contract{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "parcel_sent.avsc"), []byte(text), 0o600); err != nil {
		return schemas.Contract{}, err
	}
	tree, err := schemas.Tree(dir)
	if err != nil {
		return schemas.Contract{}, err
	}
	return tree[0], nil
}

// check is waybill schema check.
func (d *demo) check(ctx context.Context, c schemas.Contract) error {
	versions, err := d.registry.Versions(ctx, c.Subject)
	if err != nil {
		return err
	}
	var earlier []schemas.Earlier
	for _, v := range versions {
		earlier = append(earlier, schemas.Earlier{Name: fmt.Sprint("version ", v.Number), Schema: v.Schema})
	}
	if f := schemas.Check(c, earlier, compat.FullTransitive); len(f.Breaks) > 0 {
		return errors.New(f.Breaks[0])
	}
	return nil
}

func (d *demo) tryRegister(ctx context.Context, c schemas.Contract) error {
	_, err := d.registry.RegisterText(ctx, c.Subject, c.Schema)
	return err
}

func (d *demo) tryStart(ctx context.Context, c schemas.Contract) error {
	contract, err := event.NewContract(c.Topic, c.Source, c.Schema)
	if err != nil {
		return err
	}
	_, err = d.registry.Register(ctx, level, contract)
	return err
}

// whyFull adds a required field, which FORWARD accepts: those who read by the
// earlier version do not miss it. Whoever is compiled against it cannot read
// what was written before.
func (d *demo) whyFull(ctx context.Context) error {
	d.say("6", "a required field is added: FORWARD accepts what FULL refuses, and this is why FULL")
	text := strings.Replace(contractFile, `"key": "parcel_id",
  "fields": [`, `"key": "parcel_id",
  "fields": [
    {"name": "insured_cents", "type": "long", "doc": "What it is insured for."},`, 1)
	c, err := treeOf(text)
	if err != nil {
		return err
	}
	err = d.tryRegister(ctx, c)
	var refused *registry.IncompatibleError
	if !errors.As(err, &refused) {
		return fmt.Errorf("not refused under %s: %w", level, err)
	}
	d.line("   %-9s under %s: %s", "registry", level, short(err))
	// The same history under a subject of its own, with the other level.
	before := v2.ParcelSent{}.EventContract()
	topic := before.Topic + ".forward"
	for _, schema := range []string{before.Text, c.Schema} {
		contract, err := event.NewContract(topic, before.Source, schema)
		if err != nil {
			return err
		}
		if _, err := d.registry.Register(ctx, "FORWARD", contract); err != nil {
			return fmt.Errorf("refused under FORWARD: %w", err)
		}
	}
	d.line("   %-9s under FORWARD: accepted", "registry")
	return d.readOld(ctx, c.Avro)
}

// readOld reads what is in the topic's past with a reader of the schema.
func (d *demo) readOld(ctx context.Context, schema *avro.Schema) error {
	rec, err := d.record(event.WithTenant(ctx, "demo"), v2.ParcelSent{ParcelID: "p1", WeightG: 300, To: "Olinda"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var into map[string]any
	if err = registry.NewDecoder(d.registry).Decode(ctx, rec.Value, &into, schema); err == nil {
		return errors.New("a program of the new contract reads what was written before, which it should not")
	}
	d.line("   %-9s a program compiled against it reads an event written before: %v", "reader", err)
	return nil
}
