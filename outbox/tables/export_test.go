package tables

// At has f called at each step of a round.
func (r *Retention) At(f func(step string)) { r.at = f }
