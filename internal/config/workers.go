package config

import (
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// Workers is a number of them, as in workers: 16, which tells the advice what
// there is; or the bounds within which they follow the lag, as in
// workers: {min: 4, max: 16}.
type Workers struct {
	Now      int           // what there is; 0: not said, or Follow
	Follow   bool          // they follow the lag
	Min, Max int           // of Follow; min 1 unless said
	Every    time.Duration // between steps; 15s unless said
}

// UnmarshalYAML reads either form. The decoder's strictness does not reach in
// here, so that unknown keys are refused by hand.
func (w *Workers) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		if err := node.Decode(&w.Now); err != nil {
			return fmt.Errorf("line %d: workers: want a number, or {min: 4, max: 16} for them to follow the lag", node.Line)
		}
		return nil
	}
	for i := 0; i < len(node.Content); i += 2 {
		switch key := node.Content[i]; key.Value {
		case "min", "max", "every":
		default:
			return fmt.Errorf("line %d: there is no setting %s in workers: want min, max and every; how soon a lag shall be gone is drain, beside it", key.Line, key.Value)
		}
	}
	bounds := struct {
		Min   int           `yaml:"min"`
		Max   int           `yaml:"max"`
		Every time.Duration `yaml:"every"`
	}{Min: 1}
	if err := node.Decode(&bounds); err != nil {
		return err
	}
	*w = Workers{Follow: true, Min: bounds.Min, Max: bounds.Max, Every: bounds.Every}
	return nil
}

// maxWorkers is more than any process was seen to put to use.
const maxWorkers = 1024

func (w Workers) check() error {
	switch {
	case !w.Follow && (w.Now < 0 || w.Now > maxWorkers):
		return fmt.Errorf("workers: want 1 to %d, or leave it out", maxWorkers)
	case !w.Follow:
		return nil
	case w.Max == 0:
		return errors.New("workers: want max, as in workers: {min: 4, max: 16}: each may hold a connection to the database")
	case w.Min < 1 || w.Max < w.Min || w.Max > maxWorkers:
		return fmt.Errorf("workers: {min: %d, max: %d}: want 1 to %d, and max not below min", w.Min, w.Max, maxWorkers)
	case w.Every != 0 && (w.Every < time.Second || w.Every > time.Hour):
		return fmt.Errorf("workers: every: %s: want 1s to 1h, or leave it out for 15s", w.Every)
	}
	return nil
}
